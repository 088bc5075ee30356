"""What the hot statements do on a tenant of 3,000 turns among 40 others, under both walls."""

from __future__ import annotations

from typing import Any

import pytest

from mnemic.model.filters import Filter
from mnemic.model.turn_vector import TURNS_BEFORE_MAX
from mnemic.store import (
    arms,
    candidate_statements,
    filtered,
    forgetting,
    guards,
    hits,
    kept_plans,
    lineage,
    sessions,
    statistics,
    turns,
    vectors,
)
from mnemic.store.kept_plans import KeptPlans
from mnemic.store.statement import Statement
from mnemic.store.unit import Unit
from mnemic.store.working import rows

TYPES = {
    "tenant": "uuid",
    "scopes": "uuid[]",
    "vector": "halfvec",
    "model": "smallint",
    "near": "bigint",
    "words": "bigint",
    "around": "int[]",
    "match": "text",
    "either": "text",
    "rank": "text",
    "actor": "uuid",
    "terms": "text[]",
    "names": "text[]",
    "things_max": "bigint",
    "also": "uuid[]",
    **{f"{kind}_words": "uuid[]" for kind in ("turn", "episode", "fact", "procedure")},
    "newest": "bigint",
    "wanted": "bigint",
    "few": "bigint",
    "f0": "text[]",
    "f1": "text[]",
    "actors_max": "bigint",
    "pending_max": "bigint",
    "ids": "uuid[]",
    "session": "uuid",
    "first_seq": "bigint",
    "parent": "uuid",
    "digests": "bytea[]",
    "scope": "uuid",
    "kind": "text",
    "kinds": "text[]",
    "sources": "uuid[]",
    "before": "timestamptz",
    "begins": "timestamptz[]",
    "ends": "timestamptz[]",
    "most": "bigint",
    "limit": "bigint",
    "skip": "uuid[]",
    "id": "uuid",
    "count": "int",
    "first_at": "timestamptz",
    "now": "timestamptz",
}


SEARCHED = {
    "near": "30",
    "words": "30",
    "around": "ARRAY[-2, -1, 0, 1, 2]",
    "match": "'''word7'''",
    "either": "'''word7'''",
    "rank": "'''word7'''",
    "also": "ARRAY[]::uuid[]",
    **{f"{kind}_words": "ARRAY[]::uuid[]" for kind in ("turn", "episode", "fact", "procedure")},
}
COUNTED = {
    "terms": "ARRAY['word7', 'word8']",
    "names": "ARRAY['word7', 'what']",
    "things_max": "20",
    "actors_max": "200",
    "pending_max": "512",
}
INSIDE = {
    "begins": "ARRAY[now() - interval '1 hour']",
    "ends": "ARRAY[now() + interval '1 second']",
    "few": "30",
    "most": "5000",
}
SEARCHES_OF_TURNS = [
    candidate_statements.TURNS,
    candidate_statements.TURNS_OF_ACTOR,
    candidate_statements.TURNS_WORDED,
]
BOTH = pytest.mark.parametrize("plans", ["new", "kept"])


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for child in plan.get("Plans", []) for node in _nodes(child))]


async def _plan(
    busy: Any, statement: Statement, *, kept: str | None = None, **values: str
) -> list[dict[str, Any]]:
    given = {**busy.values, **values}
    types = ", ".join(TYPES[name] for name in statement.names)
    arguments = [given[name] for name in statement.names]
    return _nodes(await busy.plan(statement, types, *arguments, kept=kept))


def _indexes(nodes: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for node in nodes if "Index Name" in node}


@BOTH
@pytest.mark.parametrize(
    "statement",
    SEARCHES_OF_TURNS,
)
async def test_nearest_turns_are_read_from_the_covering_index_alone(
    busy: Any, statement: Statement, plans: str
) -> None:
    await busy.begin(plans)
    nodes = await _plan(
        busy,
        statement,
        **SEARCHED,
        actor=busy.values["tenant"],
    )

    scans = [
        node
        for node in nodes
        if node["Node Type"] == "Index Only Scan" and "exact" in node["Index Name"]
    ]
    assert scans
    assert all(node["Heap Fetches"] == 0 for node in scans)
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]
    assert "turns_seq_key" in _indexes(nodes)
    # A place in an arm is looked up: joined, the arm was hashed anew for each row.
    assert max(node["Actual Loops"] for node in nodes if node["Node Type"] == "CTE Scan") == 1
    # The cosine of each is looked up by its key; by the covering index it would be searched for.
    assert max(node["Actual Loops"] for node in scans) == 1
    assert "turn_vectors_default_pkey" in _indexes(nodes)


@BOTH
@pytest.mark.parametrize(
    "statement",
    [
        candidate_statements.OTHERS["fact",],
        candidate_statements.OTHERS["episode", "fact", "procedure"],
        candidate_statements.OTHERS_WORDED,
    ],
    ids=["fact", "all", "worded"],
)
async def test_a_hit_of_another_kind_is_looked_up_and_its_scope_is_not_read(
    busy: Any, statement: Statement, plans: str
) -> None:
    await busy.begin(plans)
    worded = await busy.connection.fetchval(
        "SELECT CAST(array_agg(m.id) AS text) FROM mnemic.facts m WHERE m.tsv @@ 'word7'"
    )
    nodes = await _plan(busy, statement, **SEARCHED | {"fact_words": f"'{worded}'::uuid[]"})

    [rows] = [node for node in nodes if node.get("Relation Name") == "facts"]
    assert rows.get("Index Name") == "facts_pkey"
    assert rows["Actual Loops"] >= 30
    assert rows.get("Rows Removed by Filter", 0) == 0
    # The cosines of the nearest are known; of those that words alone found each is looked up.
    [cosines] = [node for node in nodes if node.get("Index Name") == "fact_vectors_default_pkey"]
    assert cosines["Actual Loops"] == rows["Actual Loops"] - 30 > 0


async def test_words_ask_for_each_kind_once_and_for_no_more_than_are_wanted(busy: Any) -> None:
    nodes = await _plan(busy, candidate_statements.WORDS, **SEARCHED | {"words": "4"})

    asked = [node for node in nodes if node["Node Type"] == "Function Scan"]
    assert sorted(node["Function Name"] for node in asked) == [
        *("lexical", "lexical_episodes", "lexical_facts", "lexical_procedures")
    ]
    assert [node["Actual Rows"] for node in asked] == [4, 0, 4, 0]
    assert {node["Actual Loops"] for node in asked} == {1}


@pytest.mark.parametrize(("few", "looked_up"), [("5000", 3_001), ("2000", 0)])
async def test_what_passes_a_filter_is_looked_up_if_it_is_little_and_read_at_once_if_not(
    busy: Any, few: str, looked_up: int
) -> None:
    """All turns pass, once as a few and once as many; around the hits are some 200 more."""
    made = filtered.filtered_turns(Filter.from_json({"actor": "User"}), with_actor=False)

    nodes = await _plan(
        busy,
        made[0],
        **SEARCHED,
        newest="30",
        wanted="30",
        few=few,
        f0="ARRAY['User']",
        f1="ARRAY['User']",
    )

    read = [node for node in nodes if node.get("Relation Name", "").startswith("turn_vectors")]
    loops = max(node["Actual Loops"] for node in read if node["Node Type"] == "Index Scan")
    whole = [node for node in read if node["Actual Rows"] > 1_000 and node["Actual Loops"] == 1]
    assert looked_up <= loops <= looked_up + 400
    assert len(whole) == (0 if looked_up else 1)
    rows = [node for node in nodes if node.get("Relation Name") == "turns"]
    assert all(node["Actual Rows"] * node["Actual Loops"] <= 3_500 for node in rows)


@BOTH
async def test_document_frequencies_are_looked_up_and_nothing_is_counted(
    busy: Any, plans: str
) -> None:
    await busy.begin(plans)
    nodes = await _plan(
        busy,
        statistics.READ,
        **COUNTED,
    )

    assert {"term_stats_pkey", "turns_uncounted_idx"} <= _indexes(nodes)
    assert "term_stats_spelling_idx" not in _indexes(nodes)
    read = sum(node["Actual Rows"] for node in nodes if node.get("Relation Name") == "term_stats")
    assert read <= 10


async def test_a_plan_that_is_kept_from_an_empty_database_reads_no_table_whole(
    empty: Any,
) -> None:
    await empty.begin("kept")

    turns_read = await _plan(empty, candidate_statements.TURNS, **SEARCHED)
    others_read = await _plan(empty, candidate_statements.PROCEDURES, **SEARCHED)
    known = await _plan(empty, statistics.READ, **COUNTED)

    for nodes in (turns_read, others_read, known):
        assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]


@pytest.mark.parametrize("held", [0, 4], ids=["none", "four"])
@pytest.mark.parametrize("analysed", [False, True], ids=["unknown", "analysed"])
async def test_plans_that_were_kept_of_next_to_nothing_end_when_a_table_has_doubled(
    growing: Any, monkeypatch: pytest.MonkeyPatch, *, held: int, analysed: bool
) -> None:
    """What is as cheap as anything else among four goes through thousands for each of hundreds."""
    busy, plans = growing.busy, KeptPlans()
    unit = Unit(busy.connection, busy.scope.tenant.id, seconds=30)
    hot = {
        "turns": (candidate_statements.TURNS, SEARCHED),
        "of_actor": (
            candidate_statements.TURNS_OF_ACTOR,
            {**SEARCHED, "actor": busy.values["tenant"]},
        ),
        "known": (statistics.READ, COUNTED),
        "inside": (arms.INSIDE["turn"], INSIDE),
    }

    async def passed_over() -> dict[str, int]:
        """The rows that each went by and did not want."""
        found = {
            name: await _plan(busy, statement, kept=name, **values)
            for name, (statement, values) in hot.items()
        }
        return {name: _passed_over(nodes) for name, nodes in found.items()}

    monkeypatch.setattr(kept_plans, "LOOK_SECONDS", 0.0)
    await growing.grow(held)
    if analysed:
        await growing.admin.execute("VACUUM ANALYZE")
    await plans.look(unit)
    plans.renewed(busy.connection)
    await busy.begin("kept")
    await passed_over()
    await growing.grow(3_000)
    known = plans.is_renewed(busy.connection)
    await plans.look(unit)
    grown = plans.is_renewed(busy.connection)
    await busy.connection.execute(kept_plans.DISCARD)

    assert await passed_over() == dict.fromkeys(hot, 0)
    assert (known, grown) == (True, False)


async def test_a_small_scope_of_a_large_tenant_has_plans_of_its_own(growing: Any) -> None:
    """A kept plan may go through all that the tenant has, whichever scope is asked for."""
    busy = growing.busy
    may = []
    for held in (kept_plans.TENANT_MEMORIES_MAX, kept_plans.TENANT_MEMORIES_MAX + 1):
        await growing.grow(held)
        plans = KeptPlans()
        await plans.look(Unit(busy.connection, busy.scope.tenant.id, seconds=30))
        may.append(plans.may_keep(busy.scope.tenant.id))

    assert may == [True, False]


async def test_a_kept_plan_that_is_not_ended_goes_through_thousands(growing: Any) -> None:
    busy = growing.busy
    await busy.begin("kept")
    await _plan(busy, candidate_statements.TURNS, kept="turns", **SEARCHED)
    await growing.grow(3_000)

    nodes = await _plan(busy, candidate_statements.TURNS, kept="turns", **SEARCHED)

    assert _passed_over(nodes) > 100_000


@BOTH
@pytest.mark.parametrize(
    "statement",
    [
        *SEARCHES_OF_TURNS,
        arms.INSIDE["turn"],
        hits.BY_IDS["turn", "episode", "fact", "procedure"],
        turns.OF_SESSION,
        filtered.filtered_turns(Filter.from_json({"actor": "User"}), with_actor=False)[0],
    ],
    ids=["turns", "of_actor", "worded", "inside", "hits", "session", "filtered"],
)
async def test_for_each_memory_that_was_found_that_memory_alone_is_read(
    unseen: Any, statement: Statement, plans: str
) -> None:
    """The share of a tenant times that of its scope is nothing, and what came since is not seen."""
    await unseen.begin(plans)
    found = await unseen.connection.fetch("SELECT t.id, t.session_id FROM mnemic.turns t LIMIT 20")
    listed = ", ".join(f"'{row['id']}'" for row in found)

    nodes = await _plan(
        unseen,
        statement,
        **SEARCHED | INSIDE,
        actor=unseen.values["tenant"],
        ids=f"ARRAY[{listed}]::uuid[]",
        kinds=f"ARRAY[{', '.join(['$$turn$$'] * 20)}]",
        session=f"'{found[0]['session_id']}'",
        first_seq="0",
        limit="10",
        newest="30",
        wanted="30",
        f0="ARRAY['User']",
        f1="ARRAY['User']",
    )

    read = [node for node in nodes if "Index Name" in node]
    assert max(node.get("Rows Removed by Filter", 0) for node in read) <= 1
    assert max(node["Actual Loops"] for node in read) > 1 or statement is turns.OF_SESSION


async def test_what_a_session_carries_up_is_looked_up_above_for_each_alone(unseen: Any) -> None:
    scope = f"'{unseen.scope.id}'"

    nodes = await _plan(unseen, vectors.LIFT["turn"], session=scope, parent=scope)

    above = {node["Index Name"] for node in nodes if node.get("Relation Name") == "turns"}
    assert above == {"turns_pkey"}


def _passed_over(nodes: list[dict[str, Any]]) -> int:
    """The rows that were read and were not wanted."""
    return sum(node.get("Rows Removed by Filter", 0) * node["Actual Loops"] for node in nodes)


async def test_what_happened_at_a_time_is_found_by_its_time(busy: Any) -> None:
    nodes = await _plan(
        busy,
        arms.INSIDE["turn"],
        begins="ARRAY[now() - interval '1 hour']",
        ends="ARRAY[now() - interval '1 second']",
        few="30",
        most="1000",
    )

    assert {"turns_scope_idx", "turn_vectors_default_pkey"} <= _indexes(nodes)
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]


@pytest.mark.parametrize(
    ("call", "index"),
    [
        ("lexical('word7', 'word7', {scopes}, 30)", "turns_tsv_idx"),
        ("lexical('word7 & common', 'word7', {scopes}, 30)", "turns_tsv_idx"),
        ("lexical_actor('word7', 'word7', {scopes}, {tenant}, 30)", "turns_tsv_idx"),
    ],
)
@BOTH
async def test_the_lexical_arm_uses_its_index_behind_the_policy(
    busy: Any, servers: Any, call: str, index: str, plans: str
) -> None:
    await busy.begin(plans)
    used = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1"
    before = await busy.connection.fetchval(used, index)

    rows = await busy.connection.fetch(f"SELECT * FROM mnemic.{call.format(**busy.values)}")

    # Functions hide their plans; their use of the index is counted when the transaction ends.
    for step in ("COMMIT", "SELECT pg_stat_force_next_flush()", "SELECT 1", "BEGIN"):
        await busy.connection.execute(step)
    after = await busy.connection.fetchval(used, index)
    assert len(rows) == 6
    assert after > before


async def test_words_spelt_alike_are_found_by_their_index(busy: Any) -> None:
    used = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = $1"
    before = await busy.connection.fetchval(used, "term_stats_spelling_idx")

    rows = await busy.connection.fetch(
        f"SELECT * FROM mnemic.similar_terms('{{wrod77}}', {busy.values['scopes']}, 5)"
    )

    for step in ("COMMIT", "SELECT pg_stat_force_next_flush()", "SELECT 1", "BEGIN"):
        await busy.connection.execute(step)
    after = await busy.connection.fetchval(used, "term_stats_spelling_idx")
    assert rows[0]["term"] == "word77"
    assert after > before


@BOTH
async def test_rows_by_id_come_from_the_primary_keys_of_their_own_kinds(
    busy: Any, plans: str
) -> None:
    await busy.begin(plans)
    turn = await busy.connection.fetchval("SELECT id FROM mnemic.turns LIMIT 1")
    fact = await busy.connection.fetchval("SELECT id FROM mnemic.facts LIMIT 1")

    nodes = await _plan(
        busy,
        hits.BY_IDS["turn", "episode", "fact", "procedure"],
        kinds="ARRAY['turn', 'fact', 'fact']",
        ids=f"ARRAY['{turn}', '{fact}', '{turn}']::uuid[]",
    )

    looked = {
        node["Relation Name"]: (node["Actual Loops"], node.get("Index Name"))
        for node in nodes
        if "Relation Name" in node
    }
    assert looked["turns"] == (1, "turns_pkey")
    assert looked["facts"] == (2, "facts_pkey")
    assert looked["episodes"][0] == looked["procedures"][0] == 0


async def test_known_ids_of_a_session_are_looked_up(busy: Any) -> None:
    nodes = await _plan(
        busy,
        turns.KNOWN_EXTERNAL,
        session=f"'{busy.scope.id}'",
        digests="ARRAY['\\x01']::bytea[]",
    )

    assert _indexes(nodes) == {"turns_external_key"}


async def _listed(busy: Any, table: str) -> str:
    found = await busy.connection.fetch(f"SELECT id FROM mnemic.{table} LIMIT 10")
    listed = ", ".join(f"'{row['id']}'" for row in found)
    return f"ARRAY[{listed}]::uuid[]"


@pytest.mark.parametrize(
    ("statement", "table", "indexes"),
    [
        (forgetting.LEFT_BEHIND["fact"], "facts", {"facts_pkey", "facts_superseded_by_idx"}),
        (forgetting.UNLINK["fact"], "facts", {"facts_superseded_by_idx"}),
        (forgetting.UNLINK["episode"], "episodes", {"sessions_episode_idx"}),
        (lineage.RESTING, "facts", {"fact_evidence_source_idx", "facts_pkey"}),
    ],
    ids=["left_behind", "unlink_fact", "unlink_episode", "resting"],
)
async def test_what_refers_to_a_memory_is_found_from_its_other_end(
    busy: Any, statement: Statement, table: str, indexes: set[str]
) -> None:
    ids = await _listed(busy, table)

    nodes = await _plan(
        busy, statement, ids=ids, sources=ids, kind="'turn'", scope=f"'{busy.scope.id}'"
    )

    assert indexes <= _indexes(nodes)
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]


async def test_of_all_keys_those_that_quote_a_memory_are_looked_at_when_it_is_forgotten(
    busy: Any,
) -> None:
    ids = await _listed(busy, "facts WHERE status = 'live'")

    nodes = await _plan(busy, guards.UNQUOTE, ids=ids)

    assert {"answered_memories_memory_idx", "idempotency_keys_pkey"} <= _indexes(nodes)
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]
    quoting = await busy.connection.fetchrow(
        "SELECT count(*) AS keys, count(*) FILTER (WHERE answer ? 'notes') AS quote"
        "  FROM mnemic.idempotency_keys"
    )
    assert quoting["keys"] > 2_000
    assert quoting["quote"] == quoting["keys"] - 10


async def test_notes_that_have_expired_are_found_by_when_they_expire(busy: Any) -> None:
    nodes = await _plan(busy, rows.PURGE_NOTES, before="now() + interval '1 minute'", limit="50")

    assert "working_heads_notes_expire_idx" in _indexes(nodes)
    scans = [node for node in nodes if node["Node Type"] == "Seq Scan"]
    assert [node for node in scans if node["Relation Name"] == "working_heads"] == []


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (vectors.MISSING["turn"], "turns_needs_vector_idx"),
        (vectors.STALE, "turns_stale_idx"),
        (vectors.STILL["turn"], "turns_pkey"),
    ],
    ids=["missing", "stale", "still"],
)
async def test_what_was_said_before_a_turn_is_looked_up_for_each_by_its_place(
    busy: Any, statement: Statement, index: str
) -> None:
    ids = await busy.connection.fetch("SELECT id FROM mnemic.turns ORDER BY id LIMIT 50")
    named = ", ".join(f"'{row['id']}'" for row in ids)

    nodes = await _plan(
        busy, statement, skip="ARRAY[]::uuid[]", limit="50", ids=f"ARRAY[{named}]::uuid[]"
    )

    assert {index, "turns_seq_key"} <= _indexes(nodes)
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]
    before = [node for node in nodes if node.get("Index Name") == "turns_seq_key"]
    assert max(node["Actual Rows"] for node in before) <= TURNS_BEFORE_MAX


@pytest.mark.parametrize("statement", [turns.LAST_SAID, sessions.TAKE_PLACES])
async def test_the_last_turns_of_a_session_are_looked_up_from_its_end(
    busy: Any, statement: Statement
) -> None:
    nodes = await _plan(
        busy,
        statement,
        session=f"'{busy.scope.id}'",
        id=f"'{busy.scope.id}'",
        count="1",
        first_at="now()",
        now="now()",
    )

    [before] = [node for node in nodes if node.get("Index Name") == "turns_seq_key"]
    assert before["Actual Rows"] <= TURNS_BEFORE_MAX
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"]
