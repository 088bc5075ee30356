"""What a question of the past does on a tenant of 3,000 turns and 3,000 facts, under both walls.

Of the facts 301 changed twice since most of the moments that are asked of.
"""

from __future__ import annotations

from typing import Any

import pytest

from mnemic.store import arms, candidate_statements, statistics
from mnemic.store.statement import Statement

CHANGED = 301
ROWS = 3_001
TYPES = {
    **dict.fromkeys(("known_at", "true_at"), "timestamptz"),
    **dict.fromkeys(("tenant",), "uuid"),
    **dict.fromkeys(("scopes", "also"), "uuid[]"),
    **dict.fromkeys(("near", "words", "actors_max", "things_max", "pending_max"), "bigint"),
    "few": "int",
    **dict.fromkeys(("match", "either", "rank"), "text"),
    **dict.fromkeys(("terms", "names"), "text[]"),
    "vector": "halfvec",
    "model": "smallint",
    "around": "int[]",
}
ASKED = {
    "near": "30",
    "words": "30",
    "around": "ARRAY[-2, -1, 0, 1, 2]",
    "match": "'''word7'''",
    "either": "'''word7'''",
    "rank": "'''word7'''",
    "also": "ARRAY[]::uuid[]",
    "true_at": "NULL",
    "terms": "ARRAY['word7', 'common']",
    "names": "ARRAY['x']",
    "actors_max": "50",
    "things_max": "8",
    "pending_max": "1000",
    "few": "30",
}
# After all of it, and when the rows were made, before what changed of them.
NOW, BEFORE = "now() + interval '1 hour'", "(SELECT max(recorded_at) FROM mnemic.facts)"


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in _nodes(child))]


async def _plan(busy: Any, statement: Statement, at: str, **asked: str) -> list[dict[str, Any]]:
    """The plan for a moment, which is a value: the planner knows how much came later."""
    moment = await busy.connection.fetchval(f"SELECT CAST({at} AS text)")
    given = {**busy.values, **ASKED, **asked, "known_at": f"'{moment}'"}
    types = ", ".join(TYPES[name] for name in statement.names)
    return _nodes(await busy.plan(statement, types, *(given[name] for name in statement.names)))


def _touched(nodes: list[dict[str, Any]], relation: str) -> float:
    """How many rows of a table were read, over all loops."""
    return sum(
        node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        for node in nodes
        if node.get("Relation Name") == relation
    )


@pytest.mark.parametrize("at", [NOW, BEFORE])
async def test_vectors_of_the_past_are_read_where_they_stand_and_at_once(
    busy: Any, at: str
) -> None:
    nodes = await _plan(busy, candidate_statements.TURNS.past, at)

    [scan] = [
        node
        for node in nodes
        if node.get("Index Name", "").endswith("exact_idx") and node["Actual Rows"] > 0
    ]
    assert (scan["Node Type"], scan["Heap Fetches"]) == ("Index Only Scan", 0)
    assert (scan["Actual Loops"], scan["Actual Rows"]) == (1, ROWS)
    # Which turns were known is looked up for all of them at once, not for each vector.
    by_key = [node for node in nodes if node.get("Index Name") == "turns_pkey"]
    assert sum(node["Actual Loops"] for node in by_key) <= 1_000
    assert _touched(nodes, "turns") <= 4 * ROWS


async def test_of_turns_which_never_change_no_history_is_read(busy: Any) -> None:
    nodes = await _plan(busy, candidate_statements.TURNS.past, BEFORE)

    assert {"memory_history", "past_vectors"}.isdisjoint(
        node.get("Relation Name") for node in nodes
    )


@pytest.mark.parametrize(("at", "changed"), [(NOW, 0), (BEFORE, CHANGED)])
async def test_only_what_changed_since_is_put_together_again(
    busy: Any, at: str, changed: int
) -> None:
    nodes = await _plan(busy, statistics.READ.past, at)

    made = [node for node in nodes if node.get("Function Name") == "jsonb_populate_record"]
    assert made
    assert sum(node["Actual Loops"] for node in made) == changed


@pytest.mark.parametrize("statement", [candidate_statements.WORDS, arms.NAMING["fact"]])
async def test_words_are_looked_for_in_the_visible_scopes_alone(
    busy: Any, statement: Statement
) -> None:
    """A full-text function is given its scopes; what others have is not read for it."""
    seen = await _plan(busy, statement.past, BEFORE)
    elsewhere = await _plan(busy, statement.past, BEFORE, scopes="ARRAY[gen_random_uuid()]")

    assert _touched(seen, "facts") >= ROWS
    assert _touched(elsewhere, "facts") == _touched(elsewhere, "turns") == 0


@pytest.mark.parametrize("statement", [statistics.READ, candidate_statements.OTHERS["fact",]])
@pytest.mark.parametrize("at", [NOW, BEFORE])
async def test_the_history_of_a_memory_is_found_by_the_memory(
    busy: Any, statement: Statement, at: str
) -> None:
    nodes = await _plan(busy, statement.past, at)

    asked = [node for node in nodes if node.get("Relation Name") == "memory_history"]
    often = [node for node in asked if node["Actual Loops"] > 1]
    assert often
    assert {node["Index Name"] for node in often} == {"memory_history_place_key"}
    assert max(node["Actual Rows"] for node in often) <= 2
