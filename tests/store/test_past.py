"""Statements over the tables as they were; and that nothing changes without leaving its history."""

from __future__ import annotations

import re
from typing import Any

import asyncpg
import pytest

from mnemic.schema import metadata
from mnemic.store import (
    arms,
    candidate_statements,
    entities,
    episodes,
    facts,
    hits,
    procedures,
    statistics,
    turns,
)
from mnemic.store.past import past_template
from mnemic.store.past_columns import COLUMNS, TRACKED
from mnemic.store.statement import Statement, every_statement

# What a past moment is asked by.
READ = (
    *(entities.NAMES, episodes.BROWSE, episodes.BY_IDS, facts.BEST, facts.BY_ENTITY, facts.BY_IDS),
    *(procedures.BY_IDS, procedures.OF_TASK, procedures.TRIGGERS, statistics.READ),
    *(candidate_statements.TURNS, candidate_statements.TURNS_OF_ACTOR, candidate_statements.WORDS),
    *(candidate_statements.TURNS_WORDED, candidate_statements.OTHERS_WORDED),
    *(*candidate_statements.OTHERS.values(), candidate_statements.PROCEDURES),
    *(*hits.BY_IDS.values(), turns.OF_SESSION, facts.OF_KIND),
    *(*arms.INSIDE.values(), *arms.NAMING.values(), arms.SIMILAR),
)
# Columns that do not change once a row is there, or whose former values are nobody's business: the
# words of an episode change only when something of it is forgotten.
UNCHANGING = {
    "entities": {"tenant_id", "id", "scope_id", "name", "name_key", "kind", "recorded_at"},
    "episodes": {
        column.name
        for column in metadata.tables["mnemic.episodes"].columns
        if column.name not in ("scope_id", "importance_score", "archived_at")
    },
    "facts": {
        *("tenant_id", "id", "metadata", "tags", "person_id", "trust", "source", "recorded_at"),
        *("project_id", "subject", "subject_key", "predicate", "object", "object_key", "content"),
        *("category", "single_valued", "first_learned", "valid_from", "stems", "stem_count"),
        *("word_count", "tsv"),
        # Which value came next says where this one ended, which is kept.
        "superseded_by",
        # Not read yet.
        "decay_key",
    },
    "procedures": {
        *("tenant_id", "id", "person_id", "recorded_at", "project_id", "agent_type_id", "name_key")
    },
}
KEEPING = {"needs_vector", "stats_counted", "embedded_at", "updated_at"}


async def test_every_statement_that_is_asked_of_the_past_fits_the_schema(
    app: asyncpg.Connection,
) -> None:
    for statement in READ:
        await app.prepare(statement.past.sql)
        await app.prepare(statement.past_true.sql)

    assert {"known_at", "tenant"} <= set(statistics.READ.past.names)
    assert {"known_at", "true_at", "tenant"} <= set(statistics.READ.past_true.names)
    assert "true_at" not in {name for one in READ for name in one.past.names}


def test_a_table_whose_past_is_not_known_is_refused() -> None:
    with pytest.raises(LookupError, match="goals"):
        past_template("SELECT g.* FROM mnemic.goals g WHERE {owned:g}", timed=False)


async def test_each_column_that_is_tracked_has_its_trigger(admin: asyncpg.Connection) -> None:
    rows = await admin.fetch("""
        SELECT c.relname::text AS name, t.tgargs,
               (SELECT array_agg(a.attname::text) FROM pg_attribute a
                 WHERE a.attrelid = c.oid AND a.attnum = ANY (t.tgattr)) AS columns
          FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
         WHERE c.relnamespace = 'mnemic'::regnamespace AND t.tgname = c.relname || '_keep_history'
    """)

    on = {row["name"]: set(row["columns"]) for row in rows}
    kept = {row["name"]: set(row["tgargs"].decode().strip("\0").split("\0")) for row in rows}

    assert on == kept == {name: set(columns) for name, columns in TRACKED.items()}


@pytest.mark.parametrize("table", sorted(COLUMNS))
def test_the_columns_that_are_written_out_are_those_of_the_table(table: str) -> None:
    assert COLUMNS[table] == [column.name for column in metadata.tables[f"mnemic.{table}"].columns]


@pytest.mark.parametrize("table", sorted(TRACKED))
def test_each_column_is_tracked_or_does_not_change(table: str) -> None:
    columns = {column.name for column in metadata.tables[f"mnemic.{table}"].columns}

    assert columns - KEEPING - UNCHANGING[table] - TRACKED[table] == set()
    assert TRACKED[table] <= columns


def _changes(statement: Statement) -> dict[str, set[str]]:
    """Which columns it sets, of which tracked tables."""
    found: dict[str, set[str]] = {}
    for table, assigned in re.findall(
        r"UPDATE mnemic\.(\w+) \w+\s+SET (.+?)(?:\n\s*(?:FROM|WHERE)\b|\"\"\"|$)",
        statement.template,
        re.DOTALL,
    ):
        found[table] = set(re.findall(r"(?:^|,)\s*(\w+) =", assigned))
    upsert = re.search(
        r"INSERT INTO mnemic\.(\w+).+DO UPDATE\s+SET (.+)", statement.template, re.DOTALL
    )
    if upsert:
        found[upsert[1]] = set(re.findall(r"(?:^|,)\s*(\w+) =", upsert[2]))
    return found


def test_whatever_changes_a_tracked_column_says_when() -> None:
    changing: list[Any] = []
    silent = []

    for statement in every_statement():
        for table, columns in _changes(statement).items():
            if columns & TRACKED.get(table, frozenset()) - {"updated_at"}:
                changing.append(statement)
                if "updated_at" not in columns:
                    silent.append(statement.template)

    assert len(changing) > 10
    assert silent == []
