"""A filter says the same in PostgreSQL and in Python, whatever it asks and whatever is there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_, or_
from random import Random
from typing import Any
from uuid import UUID, uuid5

import asyncpg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mnemic.model.filter_building import where
from mnemic.model.filter_fields import FIELDS, KINDS, METADATA, FieldType
from mnemic.model.filter_matching import matches
from mnemic.model.filters import Filter, checked_filter
from mnemic.model.turn import Turn
from mnemic.schema.columns import metadata as tables
from mnemic.store.filters import FALSE, TRUE, Conditions
from mnemic.store.statement import Statement, every_statement
from mnemic.store.unit import Unit
from mnemic.testing import a_scope

SCOPE = a_scope("filters")
AT = datetime(2026, 3, 1, 9, 30, 15, 123456, tzinfo=UTC)
ROWS = 60
EXAMPLES = 250

TEXTS = [
    *("a", "B", "b", "Z", "z", "\u00e1", "e\u0301", "\u00e9", "\u00df", "\u4e2d", "\uffff"),
    *("\U0001f600", "10", "9", "-1", "true", "null", "_", "a b", "%", "'; --", '"', "\\", "\n", ""),
    *("2026-03-01T09:30:15Z", "2026-03-01T10:30:15+01:00", "2026-03-01 09:30:15.5+00:00"),
    *("2026-02-30T00:00:00Z", "2026-03-01", "2026-03-01T09:30:15", "2026-03-01T09:30:15Z\n"),
    *("8999-12-31T23:59:59-14:59", "1000-01-01T00:00:00+14:59", "0001-01-01T00:00:00+14:00"),
]
NUMBERS = [
    *(0, 1, -1, 2, 9, 10, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 9223372036854774784),
    *(0.0, -0.0, 1.0, 0.1, 0.30000000000000004, 0.3, 1e17, 1e22, 5e-324, 1e308, 9.5, 2.0**63),
]
KEYS = ["a", "b", "0", "", "a.b", "\\", "'", '"}', "\u4e2d", "-1", "tenant_id"]

any_text = st.sampled_from(TEXTS) | st.text(st.characters(exclude_characters="\x00", codec="utf-8"))
any_number = st.sampled_from(NUMBERS) | st.integers(-(2**63), 2**63 - 1)
any_number |= st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | any_number | any_text
any_key = st.sampled_from(KEYS)
any_json = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_key, inner, max_size=3),
    max_leaves=6,
)
any_object = st.dictionaries(any_key, any_json, max_size=4)


def path_of(keys: list[str]) -> str:
    written = (key.replace("\\", "\\\\").replace(".", "\\.") for key in keys)
    return ".".join(["metadata", *written])


def conditions(
    field: st.SearchStrategy[str], value: st.SearchStrategy[Any], *, ordered: Any
) -> Any:
    operators = st.one_of(
        st.tuples(st.sampled_from(["eq", "ne"]), value),
        st.tuples(st.just("in"), st.lists(value, max_size=3)),
        st.tuples(st.just("exists"), st.booleans()),
        *(
            [st.tuples(st.sampled_from(["lt", "le", "gt", "ge"]), ordered)]
            if ordered is not None
            else []
        ),
    )
    asked = st.lists(operators, min_size=1, max_size=2).map(dict)
    return st.builds(lambda name, one: {name: one}, field, asked)


def joined(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda one: {"not": one}, inner),
            st.builds(
                lambda word, some: {word: some},
                st.sampled_from(["and", "or"]),
                st.lists(inner, min_size=1, max_size=3),
            ),
        ),
        max_leaves=5,
    )


any_path = st.lists(any_key, min_size=1, max_size=2).map(path_of)
of_metadata = conditions(any_path, scalars, ordered=any_number | any_text)


def _of_field(name: str) -> st.SearchStrategy[Any]:
    known = FIELDS[name]
    value = {
        FieldType.CHOICE: st.sampled_from(known.choices or ("turn",)),
        FieldType.TEXT: st.sampled_from(TEXTS),
        FieldType.TEXTS: st.sampled_from(TEXTS),
        FieldType.NUMBER: st.sampled_from([0, 1, 0.5, 0.25, -1.5, 2**62]),
        FieldType.TRUST: st.sampled_from([0, 1, 2, 3, 4, 5, "user", "operator"]),
        FieldType.TIME: st.integers(-3, 3).map(lambda hours: AT + timedelta(hours=hours)),
        FieldType.FLAG: st.booleans(),
        FieldType.ID: st.integers(0, 3).map(lambda number: str(UUID(int=number))),
    }[known.type]
    plain = {FieldType.TEXT, FieldType.NUMBER, FieldType.TRUST, FieldType.TIME}
    ordered = value if known.type in plain else None
    return conditions(st.just(name), st.none() | value, ordered=ordered)


of_columns = st.one_of(*map(_of_field, [name for name in FIELDS if name != METADATA]))
any_filter = joined(of_columns | of_columns | of_metadata)


class Held:
    """Memories of every kind in a database, and the same read back."""

    def __init__(self, unit: Unit, memories: dict[str, list[Any]], run: Callable[..., Any]) -> None:
        self.memories = memories
        self._unit = unit
        self._run = run

    def passing(self, told: Filter, kind: str) -> set[UUID]:
        """The ids that PostgreSQL lets through."""
        made = Conditions()
        where = made.of(told, kind, "m")
        statement = Statement(
            f"SELECT m.id FROM mnemic.{kind}s m WHERE {{owned:m}} AND {where}", kept=False
        )
        return {row["id"] for row in self._fetch(statement, scopes=[SCOPE.id], **made.values)}

    def passes(self, told: Filter, held: dict[str, Any]) -> bool:
        """Whether PostgreSQL lets a turn with this metadata through."""
        made = Conditions()
        where = made.of(told, "turn", "m")
        statement = Statement(
            f"SELECT {where} AS passes FROM (SELECT CAST(:held AS jsonb) AS metadata) m", kept=False
        )
        [row] = self._fetch(statement, held=held, **made.values)
        passes: bool = row["passes"]
        return passes

    def _fetch(self, statement: Statement, **values: object) -> list[Any]:
        fetched: list[Any] = self._run(self._unit.fetch(statement, **values))
        return fetched


def _row(kind: str, number: int, chance: Random) -> dict[str, Any]:
    """Columns of a memory, drawn from what filters ask of."""

    def draw(among: list[Any], *, some: bool = False) -> Any:
        return None if some and chance.random() < 0.4 else chance.choice(among)

    def when(*, some: bool = False) -> Any:
        return draw([AT + timedelta(hours=hours) for hours in range(-3, 4)], some=some)

    def several() -> list[str]:
        return [draw(TEXTS) for _ in range(chance.randrange(3))]

    told = {draw(KEYS): draw([None, True, False, *TEXTS, *NUMBERS, ["a", 1, None], {"a": 9}])}
    row: dict[str, Any] = {
        "tenant_id": SCOPE.tenant.id,
        "id": uuid5(SCOPE.id, f"{kind} {number}"),
        "scope_id": SCOPE.id,
        "metadata": json.dumps(told if chance.random() < 0.8 else {}),
        "tags": several(),
        "trust": chance.randrange(6),
        "source": draw(TEXTS),
        "recorded_at": when(),
    }
    own: dict[str, dict[str, Any]] = {
        "turn": {
            "session_id": UUID(int=chance.randrange(3)),
            "seq": number,
            "role": draw(["user", "assistant", "system", "tool"]),
            "actor": draw(TEXTS),
            "actor_id": UUID(int=1),
            "text": "t",
            "content_digest": b"\0",
            "occurred_at": when(),
        },
        "episode": {
            "session_id": draw([UUID(int=one) for one in range(3)], some=True),
            "task_type": draw(TEXTS),
            "task_description": "t",
            "outcome": draw(["success", "failure", "partial"]),
            "importance_score": draw([0, 0.25, 0.5, 1]),
            "occurred_at": when(),
            "title": "t",
            "summary": "s",
            "key_topics": several(),
            "tools_used": several(),
            "content_digest": b"\0",
        },
        "fact": {
            "subject": draw(TEXTS),
            "subject_key": str(number),
            "predicate": draw(TEXTS),
            "object": draw(TEXTS),
            "object_key": str(number),
            "content": "c",
            "category": draw(TEXTS),
            "confidence": draw([0, 0.25, 0.5, 1]),
            "first_learned": AT,
            "last_reinforced": when(),
            "valid_from": draw([AT - timedelta(hours=9), AT], some=True),
            "valid_to": draw([AT, AT + timedelta(hours=3)], some=True),
            "pinned": draw([True, False]),
        },
        "procedure": {
            "name": draw(TEXTS),
            "name_key": str(number),
            "task_type": draw(TEXTS),
            "steps": "[]",
        },
    }
    return row | own[kind]


@pytest.fixture(scope="module")
def loop() -> Any:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture(scope="module")
def held(shared_database: Any, loop: asyncio.AbstractEventLoop) -> Any:
    chance = Random(7)
    rows = {kind: [_row(kind, number, chance) for number in range(ROWS)] for kind in KINDS}
    served = shared_database.serve(pool_max=1)
    stack = AsyncExitStack()

    async def fill() -> Unit:
        connection = await asyncpg.connect(shared_database.admin_url)
        await connection.execute("SET session_replication_role = replica")
        for kind, made in rows.items():
            names = list(made[0])
            places = ", ".join(f"${place}" for place in range(1, len(names) + 1))
            await connection.executemany(
                f"INSERT INTO mnemic.{kind}s ({', '.join(names)}) VALUES ({places})",
                [list(row.values()) for row in made],
            )
        await connection.close()
        stack.push_async_callback(served.close)
        unit: Unit = await stack.enter_async_context(
            served.open_unit(SCOPE.tenant.id, read_only=True)
        )
        return unit

    async def read(unit: Unit) -> dict[str, list[Any]]:
        ids = {kind: [row["id"] for row in made] for kind, made in rows.items()}
        return {
            "turn": list(
                (
                    await unit.retrieval.hits.by_ids(SCOPE, [("turn", one) for one in ids["turn"]])
                ).values()
            ),
            "episode": list(await unit.episodes.by_ids(SCOPE, ids["episode"])),
            "fact": list(await unit.facts.by_ids(SCOPE, ids["fact"])),
            "procedure": list(await unit.procedures.by_ids(SCOPE, ids["procedure"])),
        }

    unit = loop.run_until_complete(fill())
    memories = loop.run_until_complete(read(unit))
    assert all(len(found) == ROWS for found in memories.values())
    yield Held(unit, memories, loop.run_until_complete)
    loop.run_until_complete(stack.aclose())


@settings(max_examples=EXAMPLES)
@given(told=any_filter)
@example(told={"outcome": "success"})
@example(told={"not": {"importance": {"ge": 0.5}}})
@example(told={"tags": {"in": []}})
def test_columns_are_filtered_in_postgresql_as_in_python(held: Held, told: Any) -> None:
    checked = checked_filter(told)
    assert checked is not None

    for kind in KINDS:
        fit = {one.id for one in held.memories[kind] if matches(checked, one)}
        assert held.passing(checked, kind) == fit


@settings(max_examples=EXAMPLES)
@given(told=joined(of_metadata), metadata=any_object)
@example(told={"metadata.a": {"lt": 10}}, metadata={"a": 9})
@example(told={"metadata.a": {"lt": "10"}}, metadata={"a": 9})
@example(told={"metadata.a": 2**63 - 1024}, metadata={"a": float(2**63 - 1024)})
@example(
    told={"metadata.a": {"ge": "2026-03-01T09:30:15Z"}}, metadata={"a": "2026-02-30T00:00:00Z"}
)
@example(told={"metadata.a": "2026-03-01T09:30:15Z"}, metadata={"a": "2026-03-01T10:30:15+01:00"})
@example(told={"metadata.a": {"ge": TEXTS[-1]}}, metadata={"a": TEXTS[-2]})
@example(told={"metadata.a": None}, metadata={"a": [None]})
@example(told={"metadata.0": 1}, metadata={"0": [[1], {"0": 1}]})
def test_metadata_is_filtered_in_postgresql_as_in_python(
    held: Held, told: Any, metadata: dict[str, Any]
) -> None:
    checked = checked_filter(told)
    assert checked is not None
    turn: Turn = replace(held.memories["turn"][0], metadata=metadata)

    assert held.passes(checked, metadata) is matches(checked, turn)


def built(told: dict[str, Any]) -> Filter:
    """What a JSON object tells, put together in Python."""
    parts: list[Filter] = []
    for key, inner in told.items():
        if key in ("and", "or"):
            parts.append(reduce(and_ if key == "and" else or_, map(built, inner)))
        elif key == "not":
            parts.append(~built(inner))
        else:
            methods = {"in": "in_"}
            parts += [
                where(key).exists(present=operand)
                if operator == "exists"
                else getattr(where(key), methods.get(operator, operator))(operand)
                for operator, operand in inner.items()
            ]
    return reduce(and_, parts)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(told=any_filter)
@example(told={"not": {"not": {"trust": {"le": 1}}}})
@example(told={"and": [{"or": [{"pinned": {"eq": True}}]}, {"valid_to": {"exists": False}}]})
def test_a_filter_that_was_built_lets_through_what_its_json_does(held: Held, told: Any) -> None:
    made = built(told)
    filters = [checked_filter(told), checked_filter(made), Filter.from_json(made.to_json())]
    again = Filter.from_text(json.dumps(made.to_json()))

    assert again == checked_filter(made)
    for kind in KINDS:
        passing = [held.passing(one, kind) for one in filters if one is not None]
        assert len(passing) == 3
        assert passing[0] == passing[1] == passing[2]
        assert passing[0] == {one.id for one in held.memories[kind] if matches(made, one)}


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(told=joined(of_metadata), metadata=any_object)
def test_a_path_that_was_built_is_that_of_its_json(
    held: Held, told: Any, metadata: dict[str, Any]
) -> None:
    made = built(told)
    turn: Turn = replace(held.memories["turn"][0], metadata=metadata)
    of_json = checked_filter(told)

    assert of_json is not None
    assert held.passes(made, metadata) is held.passes(of_json, metadata) is matches(made, turn)
    assert Filter.from_json(made.to_json()) == checked_filter(made)


@settings(deadline=None, derandomize=True)
@given(keys=st.lists(any_key | any_text, min_size=1, max_size=4))
def test_keys_are_themselves_whatever_characters_they_have(held: Held, keys: list[str]) -> None:
    asked = where("metadata", *keys).eq(1)

    told: Any = reduce(lambda inner, key: {key: inner}, reversed(keys), 1)
    assert asked == where(path_of(keys)).eq(1) == Filter.from_json({path_of(keys): 1})
    turn: Turn = held.memories["turn"][0]
    assert matches(asked, replace(turn, metadata=told))
    assert not matches(asked, replace(turn, metadata={}))
    assert held.passes(asked, told)


@pytest.mark.parametrize("field", ["source", "metadata.a"])
def test_text_is_ordered_by_code_points_whatever_the_collation(field: str) -> None:
    """The servers here have no collation that would tell; elsewhere `a` may stand before `B`."""
    found = Conditions().of(checked_filter({field: {"lt": "a"}}), "turn", "m")

    assert found.count('COLLATE "C" < CAST(') == 1


def test_what_the_kind_alone_decides_asks_nothing_of_the_rows() -> None:
    made = Conditions()

    found = [
        made.of(Filter.from_json(told), kind, "m")
        for kind in ("turn", "episode")
        for told in (
            {"outcome": {"in": []}},
            {"kind": "turn"},
            {"or": [{"kind": "turn"}, {"outcome": "success"}]},
            {"importance": {"exists": False}},
        )
    ]

    assert found[:4] == [FALSE, TRUE, TRUE, TRUE]
    assert found[4:6] == [FALSE, FALSE]
    assert found[6].startswith("coalesce(CAST(m.outcome AS text) = ANY(")


def test_neither_a_value_nor_a_key_becomes_a_part_of_the_statement() -> None:
    made = Conditions()
    hostile = "a'); DROP TABLE turns; --"

    found = made.of(
        Filter.from_json({f"metadata.{hostile}.{hostile}": {"in": [hostile]}, "actor": hostile}),
        "turn",
        "m",
    )

    assert "DROP" not in found
    assert list(made.values.values()) == [hostile, hostile, [f'"{hostile}"'], [hostile]]


def test_every_field_is_a_column_of_the_kinds_that_have_it() -> None:
    named = [(kind, name) for known in FIELDS.values() for kind, name in known.of.items()]

    missing = [one for one in named if one[1] not in tables.tables[f"mnemic.{one[0]}s"].columns]

    assert len(named) > 30
    assert missing == []


def test_a_statement_of_one_call_is_not_kept() -> None:
    before = len(every_statement())

    Statement("SELECT 1", kept=False)

    assert len(every_statement()) == before
