"""Text and encoding: what a report said went wrong elsewhere, and what must happen here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from uuid import UUID

import pytest

from mnemic import MemoryManager, Retracted, Scope
from mnemic.model.context_form import parse
from mnemic.model.embedding import Embedder
from mnemic.model.normalise import comparison_key
from mnemic.model.token_count import EstimatedTokens
from mnemic.model.transcript import StatedFact
from mnemic.testing import a_conversation, a_fact, a_turn
from oracles.answers import refused
from oracles.reach import within_budget
from oracles.round_trip import same
from oracles.stage import Stage

NOT_APPLICABLE: dict[str, str] = {
    "A18": "a secret beside Chinese text: nothing redacts secrets yet, with or without word bounds",
}

HARMLESS = "Deploys are frozen on Fridays"


async def found_texts(memory: MemoryManager, query: str, scope: Scope) -> list[str]:
    found = await memory.recall(query, scope=scope, floor=0.0)
    return [hit.text for hit in found.hits]


async def test_a03_a_nul_in_a_query_or_an_id_is_refused_and_named(
    memory: MemoryManager, scope: Scope
) -> None:
    here = memory.at(scope)

    await refused(
        memory.recall("foo\x00", scope=scope),
        field="query",
        control=memory.recall("foo", scope=scope),
    )
    await refused(
        here.semantic.get_by_entity("foo\x00"),
        field="entity",
        control=here.semantic.get_by_entity("foo"),
    )
    await refused(
        _started(memory, scope, "s\x00"), field="session", control=_started(memory, scope, "s")
    )


async def _started(memory: MemoryManager, scope: Scope, name: str) -> object:
    return await memory.sessions.start(scope=scope.session(name))


async def test_a04_row_and_index_take_a_nul_together_or_not_at_all(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    before = await stage.stored(scope)

    await refused(
        memory.remember("The kestrel\x00 nests here", scope=scope),
        field="content",
        control=memory.recall("kestrel", scope=scope),
    )

    assert await stage.stored(scope) == before
    assert await found_texts(memory, "kestrel", scope) == []
    await memory.remember("The kestrel nests here", scope=scope)
    assert await found_texts(memory, "kestrel", scope) == ["The kestrel nests here"]


@pytest.mark.parametrize("marker", ["<|endoftext|>", "[SEP]", "[CLS] [MASK]", "</s><pad>"])
async def test_a07_a_tokenizers_own_marker_is_ordinary_text(
    memory: MemoryManager, embedder: Embedder, scope: Scope, marker: str
) -> None:
    text = f"Write {marker} at the end"
    await memory.store_fact(a_fact(object="x", content=text), scope=scope)

    section = await memory.context("What to write at the end?", scope=scope)
    marked, plain, empty = await embedder.embed([text, "Write at the end", marker])

    within_budget(section)
    # Whoever puts the section into a chat's template finds no mark of that template in it.
    assert marker not in section.text
    assert [text] == [item for part in parse(section.text) for item in part.items]
    assert EstimatedTokens().count(text) > EstimatedTokens().count("Write at the end")
    assert all(len(one) == embedder.signature.dimensions for one in (marked, plain, empty))
    assert list(marked) != list(plain)


@pytest.mark.parametrize(
    "text", ["use {name} and {}", "%s of %(x)d 100%", "${HOME} {{x}} {0!r}", HARMLESS]
)
async def test_a08_braces_and_percent_signs_reach_the_prompt_unchanged(
    memory: MemoryManager, scope: Scope, text: str
) -> None:
    await memory.store_fact(a_fact(content=text), scope=scope)

    section = await memory.context("what to use?", scope=scope)

    [items] = [part.items for part in section.sections if part.title == "Facts"]
    assert items == (text,)
    assert text in section.text


@pytest.mark.parametrize(
    "text", ["a\x01b", "tab\there", "\x1b[31mred\x1b[0m", "\x7f\x85x", HARMLESS]
)
async def test_a09_control_characters_are_kept_and_given_back(
    stage: Stage, memory: MemoryManager, scope: Scope, text: str
) -> None:
    session = scope.session("s")

    [said] = await memory.sessions.append([a_turn(text, metadata={"k": text})], scope=session)
    fact = await memory.at(scope).semantic.store_fact(a_fact(object=text))
    await memory.at(session).working.set("k", [text])

    turn = await stage.kept(said, session)
    assert same([text, {"k": text}], [turn.text, turn.metadata])
    assert fact.object == text
    assert await memory.at(session).working.get("k") == [text]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u4ed6\u559c\u6b22\u559d\u7eff\u8336", "\u5979\u4f4f\u5728\u5317\u4eac"),
        ("\u0627\u0644\u0642\u0647\u0648\u0629", "\u0627\u0644\u0634\u0627\u064a"),
        ("\U0001f680", "\U0001f40d"),
        ("caf\u00e9", "caf"),
        ("coffee", "tea"),
    ],
)
async def test_a11_two_values_in_any_script_are_two_facts(
    memory: MemoryManager, scope: Scope, one: str, other: str
) -> None:
    semantic = memory.at(scope).semantic

    kept = [await semantic.store_fact(a_fact(object=value)) for value in (one, other, one)]

    assert [fact.object for fact in await semantic.get_by_entity("User")] != []
    assert kept[0].id == kept[2].id != kept[1].id
    assert {fact.object for fact in await semantic.get_by_entity("User")} == {one, other}
    assert comparison_key(one) != comparison_key(other)


@pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC"), ("NFC", "NFC")])
async def test_a12_composed_and_decomposed_spellings_find_each_other(
    memory: MemoryManager, scope: Scope, stored: str, asked: str
) -> None:
    word = "caf\u00e9 \u0439\u043e\u0433\u0443\u0440\u0442 \uac00\uc6b4"
    kept, question = (
        unicodedata.normalize("NFC", word) if form == "NFC" else unicodedata.normalize("NFD", word)
        for form in (stored, asked)
    )
    semantic = memory.at(scope).semantic
    fact = await semantic.store_fact(a_fact(subject=kept))

    found = await memory.recall(question, scope=scope)

    assert fact.subject == kept
    assert [hit.id for hit in found.hits if hit.words_place == 1] == [fact.id]
    assert [one.id for one in await semantic.get_by_entity(question)] == [fact.id]


# Releases are frozen on Fridays; asked with one word too few letters and one too many.
_RUSSIAN = (
    "\u0420\u0435\u043b\u0438\u0437\u044b "
    "\u0437\u0430\u043c\u043e\u0440\u043e\u0436\u0435\u043d\u044b "
    "\u043f\u043e \u043f\u044f\u0442\u043d\u0438\u0446\u0430\u043c"
)
_RUSSIAN_ASKED = (
    "\u0440\u0435\u043b\u0438\u0437\u044b "
    "\u0437\u0430\u043c\u043e\u0440\u043e\u0436\u0435\u043d\u044b "
    "\u043f\u044f\u0442\u043d\u0438\u0441\u0446\u0443"
)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (_RUSSIAN, _RUSSIAN_ASKED),
        ("Deploys are frozen on Fridays", "deploys frozen friyday"),
    ],
)
async def test_a15_one_misspelt_word_of_three_costs_as_little_in_russian_as_in_english(
    memory: MemoryManager, scope: Scope, text: str, question: str
) -> None:
    await memory.sessions.append([a_turn(text)], scope=scope.session("s"))
    await memory.sessions.end(scope=scope.session("s"))

    found = await memory.recall(question, scope=scope, memory_types=["episodic"])

    turns = [hit for hit in found.hits if hit.kind == "turn"]
    assert [(hit.text, hit.words_place is not None) for hit in turns] == [(f"User: {text}", True)]


_SEEDED = """
import asyncio, json, sys
from mnemic import Scope
from mnemic.embed import open_embedder
from mnemic.model.normalise import comparison_key, digest
from mnemic.service.end_session import episode_id_of
from mnemic.settings import EmbeddingSettings

async def vectors():
    model = open_embedder(EmbeddingSettings())
    made = await model.embed(["!!!", "a plain sentence"])
    await model.close()
    return [bytes(memoryview(one)).hex() for one in made]

scope = Scope.organisation("acme").project("p").session("s")
print(json.dumps([hash("!!!"), asyncio.run(vectors()), digest("!!!", "x").hex(),
                  comparison_key("!!! \\u00c9"), str(scope.id), str(episode_id_of(scope))]))
"""


def test_a16_vectors_and_digests_do_not_depend_on_the_seed_of_the_process() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _SEEDED],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]

    (salted, *one), (resalted, *other) = (
        json.loads(process.communicate(timeout=120)[0]) for process in running
    )

    assert salted != resalted
    assert one == other


async def test_a17_the_id_of_what_is_derived_can_be_fetched_and_is_always_the_same(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    session = scope.session("s")
    await memory.sessions.append(a_conversation([HARMLESS, "Noted."]), scope=session)

    ended = await memory.sessions.end(scope=session)
    async with stage.another() as restarted:
        again = await restarted.sessions.end(scope=session)
        recent = await restarted.at(scope).episodic.get_recent()
        summary = await restarted.at(scope).episodic.summarize_episodes([recent[0].id])

    assert ended is not None
    assert again is not None
    assert [ended.id, again.id] == [recent[0].id] * 2
    assert isinstance(ended.id, UUID)
    assert summary != ""


async def test_a19_a_name_over_two_lines_is_the_name_on_one(
    memory: MemoryManager, scope: Scope
) -> None:
    semantic = memory.at(scope).semantic

    broken = await semantic.store_fact(a_fact(subject="Ada\n\tLovelace\u2028"))
    whole = await semantic.store_fact(a_fact(subject="Ada Lovelace", object="Rust"))
    other = await semantic.store_fact(a_fact(subject="AdaLovelace", object="Go"))

    assert broken.subject == whole.subject == "Ada Lovelace"
    found = {fact.id for fact in await semantic.get_by_entity("Ada  Lovelace")}
    assert found == {broken.id, whole.id}
    assert other.id not in found


async def test_a20_one_batch_and_many_give_the_same_facts(
    stage: Stage, memory: MemoryManager, scope: Scope
) -> None:
    names = ["Bob \U0001f680", "Bob", "BOB", "B\u200dob", "Bo\u0301b"]
    stated = [
        StatedFact(fact=a_fact(subject=name), external_id=f"f-{place}", line=place)
        for place, name in enumerate(names)
    ]
    apart = Scope.user(f"{scope.tenant.external_id} apart")

    together = await memory.transcripts.ingest(stated, scope=scope)
    for one in stated:
        await memory.transcripts.ingest([one], scope=apart)

    rows = [
        await stage.seen.fetch(
            "SELECT subject, subject_key, reinforcement_count FROM mnemic.facts "
            "WHERE tenant_id = $1 ORDER BY subject_key",
            one.tenant.id,
        )
        for one in (scope, apart)
    ]
    assert together.problems == ()
    assert rows[0] == rows[1]
    assert [row["reinforcement_count"] for row in rows[0]] == [3, 1, 1]


@pytest.mark.parametrize(
    "mark", ["\u200d", "\u200b", "\u2060", "\u00ad", "\u202e", "\ufe0f", "\u034f"]
)
async def test_a21_a_mark_that_nobody_sees_makes_no_other_value(
    memory: MemoryManager, scope: Scope, mark: str
) -> None:
    semantic = memory.at(scope).semantic
    kept = await semantic.store_fact(a_fact(object="admin"))
    await semantic.deprecate_fact(kept.id, "he is none")
    disguised = a_fact(object=f"ad{mark}min")

    with pytest.raises(Retracted):
        await semantic.store_fact(disguised)

    lifted = await semantic.store_fact(disguised, lift=True)
    assert lifted.object == f"ad{mark}min"
    assert (await semantic.store_fact(a_fact(object="administrator"))).status == "live"
