"""Whatever bytes a file holds, each line is kept to be used, or told with what is wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from io import BytesIO
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic import Scope
from mnemic.model.transcript import Entry, read
from mnemic.testing import a_fact, a_scope
from oracles.answers import MESSAGE_CHARS_MAX
from oracles.doors import Kept, Sent, raw
from oracles.stage import Stage
from oracles.total import NEIGHBOUR, assert_total, assert_usable

Run = Callable[[Awaitable[Any]], Any]
_numbers = count(1)

LINES = (
    b'{"type":"turn","session":"s","actor":"User","text":"I use tabs.","at":"2026-03-02T09:00Z"}',
    b'{"type":"turn","session":"t","actor":"Ann","text":"It is \\u00e9.","id":"m-1"}',
    b'{"type":"turn","session":"t","text":"x","at":"2026-03-02T10:00Z","metadata":{"k":[1,null]}}',
    b'{"type":"fact","subject":"User","predicate":"uses","object":"Valkey","metadata":{"n":1}}',
    b'{"type":"session","session":"s","outcome":"success"}',
    b"# A talk [2026-03-02 09:00]",
    b"User: I live in Oslo.",
    b"  and elsewhere",
    b"",
)
_TABLES = {"turn": "turns", "fact": "facts", "episode": "episodes"}


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Lines that can be read, with some bytes put in, taken out or in another's place."""
    content = b"\n".join(draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=5)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(content)))
        cut = draw(st.integers(0, 4))
        content = content[:at] + draw(raw | st.just(b"")) + content[at + cut :]
    return content


async def entries_of(content: bytes) -> list[Entry]:
    """What is read in the file."""
    return list(read(BytesIO(content)))


@settings(max_examples=40)
@given(content=files() | raw)
def test_generated_files_are_told_line_by_line_and_what_is_kept_is_usable(
    stage: Stage, run_here: Run, content: bytes
) -> None:
    run_here(_ingested(stage, content))


async def _ingested(stage: Stage, content: bytes) -> None:
    scope = a_scope(f"files-{next(_numbers)}")
    told = a_fact(subject="Bird", predicate="is", object=NEIGHBOUR)
    await stage.memory.store_fact(told, scope=scope)
    seen = await assert_total(entries_of(content), {"file", "format"})

    ingested = stage.memory.transcripts.ingest(seen.reply or [], scope=scope)
    report = (await assert_total(ingested, {"entries"})).reply

    kept = await _kept(stage, scope)
    assert len(kept["turn"]) == report.turns_added
    assert len(kept["fact"]) >= min(report.facts_added, 1)
    for problem in report.problems:
        problem.reason.encode()
        assert 0 < len(problem.reason) <= MESSAGE_CHARS_MAX
    for kind in ("turn", "fact"):
        for identity, place in kept[kind][:2]:
            await assert_usable(stage, Sent(place, (Kept(identity, kind),)))


async def _kept(stage: Stage, scope: Scope) -> dict[str, list[Any]]:
    """The ids of what stands in the tenant beside the neighbour, and from where each is seen."""
    projects = {
        place.id: place for name in await _names(stage, scope) for place in (scope.project(name),)
    }
    found = {}
    for kind, table in _TABLES.items():
        rows = await stage.seen.fetch(
            f"SELECT * FROM mnemic.{table} WHERE tenant_id = $1 ORDER BY id", scope.tenant.id
        )
        found[kind] = [
            (row["id"], projects.get(row["scope_id"], scope))
            for row in rows
            if kind != "fact" or NEIGHBOUR not in row["content"]
        ]
    return found


async def _names(stage: Stage, scope: Scope) -> list[str]:
    rows = await stage.seen.fetch(
        "SELECT DISTINCT project FROM mnemic.scopes WHERE tenant_id = $1 AND project IS NOT NULL",
        scope.tenant.id,
    )
    return [row["project"] for row in rows]
