from __future__ import annotations

import re

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.embedded import EmbeddedServers
from mnemic.store.wording import (
    LEXEME_BYTES_MAX,
    LEXEMES_BYTES_MAX,
    POSITION_MAX,
    POSITIONS_MAX,
    QUERY_STEMS_MAX,
    Words,
    query_of,
    tsquery_text,
    tsvector_text,
    words_of,
)

HOSTILE = (
    "it's",
    "a'b''c",
    "\\",
    "\\'",
    "' | 'x",
    "a & !b <-> c:*",
    "tab\tnew\nline",
    "nul\x00byte",
    "\ud800",
    ":1,2",
    "茶" * 1_000,
    "é",
    "''",
    " ",
)
_VECTOR = re.compile(r"'((?:[^'\\]|''|\\\\)*)':(\d+(?:,\d+)*)(?: |$)")
_QUERY = re.compile(r"'((?:[^'\\]|''|\\\\)+)'(?: \| |$)")


def words(*stems: str) -> Words:
    return Words(
        stems=stems,
        length=len(stems),
        word_count=len(stems),
        ends_with_question=False,
        first_person=False,
        has_name=False,
        has_time_expression=False,
    )


def holdable(stem: str) -> str:
    raw = stem.replace("\x00", "").encode(errors="ignore")
    return raw[:LEXEME_BYTES_MAX].decode(errors="ignore")


def unquoted(lexeme: str) -> str:
    return lexeme.replace("''", "'").replace("\\\\", "\\")


def parsed_vector(text: str) -> dict[str, list[int]]:
    """Read strictly: nothing but quoted lexemes with positions."""
    found, at = {}, 0
    while at < len(text):
        hit = _VECTOR.match(text, at)
        assert hit is not None
        found[unquoted(hit[1])] = [int(place) for place in hit[2].split(",")]
        at = hit.end()
    return found


def parsed_query(text: str) -> list[str]:
    """Read strictly: nothing but quoted lexemes joined by the operator OR."""
    found, at = [], 0
    while at < len(text):
        hit = _QUERY.match(text, at)
        assert hit is not None
        found.append(unquoted(hit[1]))
        at = hit.end()
    return found


def test_stems_carry_their_places() -> None:
    assert tsvector_text(words_of("green tea, and green cups")) == "'green':1,3 'tea':2 'cup':4"
    assert tsvector_text(words("it's")) == "'it''s':1"
    assert tsvector_text(words()) == ""


def test_a_query_is_any_of_its_stems_once() -> None:
    assert tsquery_text(["green", "tea", "green"]) == "'green' | 'tea'"
    assert tsquery_text(["o'neil & !x"]) == "'o''neil & !x'"


def test_a_query_without_anything_to_look_for_is_none() -> None:
    assert tsquery_text([]) is None
    assert tsquery_text(["", "\x00", "\ud800"]) is None
    assert tsquery_text(query_of("?!", actors=(), terms_max=9).stems) is None


@given(st.lists(st.text(st.characters(), max_size=20), max_size=30))
def test_any_strings_come_back_as_lexemes(stems: list[str]) -> None:
    vector = parsed_vector(tsvector_text(words(*stems)))
    query = parsed_query(tsquery_text(stems) or "")

    assert set(vector) == set(query) == {kept for stem in stems if (kept := holdable(stem))}
    assert all(stems[place - 1] for places in vector.values() for place in places)


def test_places_are_bounded_and_every_stem_is_kept() -> None:
    common = ["tea"] * 1_000
    late = [f"word{number}" for number in range(POSITION_MAX)]

    vector = parsed_vector(tsvector_text(words(*common, *late)))

    assert vector["tea"] == list(range(1, POSITIONS_MAX + 1))
    assert vector[late[-1]] == [POSITION_MAX]
    assert len(vector) == 1 + len(late)


def test_a_query_is_bounded() -> None:
    query = tsquery_text(f"word{number}" for number in range(50_000))

    assert query is not None
    assert len(parsed_query(query)) == QUERY_STEMS_MAX


@pytest.fixture
async def server(servers: EmbeddedServers) -> asyncpg.Connection:
    connection = await asyncpg.connect(servers.postgres_url())
    yield connection
    await connection.close()


async def test_postgresql_reads_hostile_stems_as_they_are(server: asyncpg.Connection) -> None:
    vector, query = tsvector_text(words(*HOSTILE)), tsquery_text(HOSTILE)

    lexemes = await server.fetchval("SELECT tsvector_to_array($1::text::tsvector)", vector)
    nodes = await server.fetchval("SELECT numnode($1::text::tsquery)", query)
    matches = [
        await server.fetchval(
            "SELECT $1::text::tsvector @@ $2::text::tsquery", vector, tsquery_text([stem])
        )
        for stem in HOSTILE
        if holdable(stem)
    ]

    expected = {kept for stem in HOSTILE if (kept := holdable(stem))}
    assert set(lexemes) == expected
    assert nodes == 2 * len(expected) - 1  # the lexemes and the ORs between them, nothing else
    assert all(matches)


async def test_postgresql_takes_the_places_as_written(server: asyncpg.Connection) -> None:
    written = tsvector_text(words_of("green tea, and green cups"))

    kept = await server.fetchval("SELECT $1::text::tsvector::text", written)

    assert kept == "'cup':4 'green':1,3 'tea':2"


@pytest.mark.measured
@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"{number:06d}{'x' * 40}" for number in range(100_000)),
        "".join(chr(0x4E00 + number * 7_919 % 20_000) for number in range(300_000)),
        "tea " * 200_000,
    ],
    ids=["many long words", "many pairs", "one word"],
)
async def test_postgresql_takes_a_text_of_any_size(server: asyncpg.Connection, text: str) -> None:
    vector = tsvector_text(words_of(text))

    lexemes = await server.fetchval("SELECT length($1::text::tsvector)", vector)

    assert lexemes == len(parsed_vector(vector)) >= 1


async def test_postgresql_takes_the_longest_query(server: asyncpg.Connection) -> None:
    short = tsquery_text(f"word{number}" for number in range(2 * QUERY_STEMS_MAX))
    long = tsquery_text(f"{number}{'茶' * 900}" for number in range(QUERY_STEMS_MAX))

    nodes = [
        await server.fetchval("SELECT numnode($1::text::tsquery)", query) for query in (short, long)
    ]

    # Of the long ones as many as fit: each costs 2,000 bytes of letters and 2 of quotes.
    assert nodes == [2 * QUERY_STEMS_MAX - 1, 2 * (LEXEMES_BYTES_MAX // 2_001) - 1]
