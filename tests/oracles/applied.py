"""*Shown = applied*: what a list is narrowed by holds for all of it, and a count is of what went.

`FILTERS` names what narrows an answer. A new one is an entry there: it is then held against the
same filter in memory, and what it cannot parse against *fail closed* (`oracles.closed`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from hypothesis import strategies as st

from mnemic import Episode, Fact, MemoryManager, Outcome, Scope
from mnemic.model.normalise import comparison_key
from mnemic.model.recall import KINDS_BY_TYPE, Hit, kinds_of

__all__ = ["FILTERS", "LIMIT", "Filter", "assert_applied", "assert_counted"]

LIMIT = 100
START = datetime(2026, 3, 1, tzinfo=UTC)
QUERY = "User uses"
_TABLES = {"fact": "facts", "episode": "episodes", "procedure": "procedures", "turn": "turns"}
_STRANGERS: tuple[Any, ...] = (5, b"x", {"$ne": None}, ["x"], "\x00", "\ud800", "")
_NO_NUMBERS: tuple[Any, ...] = ("5", float("nan"), float("inf"), -1, True, {"gte": 0}, [0.4], "")
_NO_LIMITS: tuple[Any, ...] = (0, -1, "5", 1.5, float("nan"), True, [5], {"$gt": 0})

Ask = Callable[[MemoryManager, Scope, Any, Any], Awaitable[Sequence[Any]]]
Whole = Callable[[MemoryManager, Scope], Awaitable[Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Filter:
    """A value that narrows a list, under the name that an error has for it.

    `ask` lists what the value lets through, at most so many; `whole` lists everything, in the same
    order; `fits` says in memory what the documentation says of one item. `values` can be parsed,
    and `good` is one of them that something fits; what is `unparsable` cannot.
    """

    field: str
    ask: Ask
    whole: Whole
    fits: Callable[[Any, Any], bool]
    values: st.SearchStrategy[Any]
    good: Any
    unparsable: tuple[Any, ...]
    no_limits: tuple[Any, ...] = _NO_LIMITS

    def __str__(self) -> str:
        return self.field


def _recent(memory: MemoryManager, scope: Scope) -> Awaitable[Sequence[Any]]:
    return memory.at(scope).episodic.get_recent(LIMIT)


def _of_user(memory: MemoryManager, scope: Scope) -> Awaitable[Sequence[Any]]:
    return memory.at(scope).semantic.get_by_entity("User", LIMIT)


async def _hits(memory: MemoryManager, scope: Scope, limit: Any = LIMIT, **given: Any) -> list[Hit]:
    narrowed = {"floor": 0.0, **given}
    found = await memory.recall(QUERY, scope=scope, limit=limit, **narrowed)
    return list(found.hits)


async def _keys(memory: MemoryManager, scope: Scope, pattern: Any = "*") -> list[str]:
    return await memory.at(scope).working.list_keys(pattern)


def _is_of(fact: Fact, name: str) -> bool:
    return comparison_key(name) in {comparison_key(fact.subject), comparison_key(fact.object)}


def _happened(episode: Episode, since: datetime) -> bool:
    return episode.occurred_at >= since


TYPES = ("deploy", "review", "100%")
OBJECTS = ("PostgreSQL", "Valkey", "100%", "under_score", "caf\u00e9")
KEYS = ("plan", "plan.b", "*", "a?", "\u00e9")

FILTERS: tuple[Filter, ...] = (
    Filter(
        "since",
        lambda memory, scope, value, limit: memory.at(scope).episodic.get_recent(limit, value),
        _recent,
        _happened,
        st.integers(-1, 15).map(lambda hours: START + timedelta(hours=hours)),
        START,
        (START.replace(tzinfo=None), START.date(), "2026-03-01T00:00:00Z", 5, "", {"gte": START}),
    ),
    Filter(
        "outcome",
        lambda memory, scope, value, limit: memory.at(scope).episodic.get_by_outcome(value, limit),
        _recent,
        lambda episode, value: episode.outcome is Outcome(value),
        st.sampled_from([*Outcome, "failure"]),
        Outcome.SUCCESS,
        ("splendid", "", None, 5, ["success"], {"$ne": "success"}, "SUCCESS"),
    ),
    Filter(
        "task_type",
        lambda memory, scope, value, limit: memory.at(scope).episodic.get_by_task_type(
            value, limit
        ),
        _recent,
        lambda episode, value: episode.task_type == value,
        st.sampled_from([*TYPES, "100x", "Deploy", "dep%", "none"]),
        "deploy",
        (*_STRANGERS, None),
    ),
    Filter(
        "entity",
        lambda memory, scope, value, limit: memory.at(scope).semantic.get_by_entity(value, limit),
        _of_user,
        _is_of,
        st.sampled_from([*OBJECTS, "user", "CAFE\u0301", "100x", "underXscore", "Postgre", "%"]),
        "PostgreSQL",
        (*_STRANGERS, None),
    ),
    Filter(
        "memory_types",
        lambda memory, scope, value, limit: _hits(memory, scope, limit, memory_types=value),
        _hits,
        lambda hit, value: hit.kind in kinds_of(tuple(value)),
        st.lists(st.sampled_from(list(KINDS_BY_TYPE)), max_size=4),
        ["semantic"],
        ("semantic", ["facts"], ["semantic", None], [5], {"semantic": True}, 5, [""], [["turn"]]),
    ),
    Filter(
        "floor",
        lambda memory, scope, value, limit: _hits(memory, scope, limit, floor=value),
        _hits,
        lambda hit, value: hit.score >= value,
        st.floats(0, 1) | st.integers(0, 1),
        0.0,
        _NO_NUMBERS,
    ),
    # Kinds of few memories, since with a filter more may be found than without; tests/service holds
    # every field against the same filter in memory.
    Filter(
        "filters",
        lambda memory, scope, value, limit: _hits(memory, scope, limit, filters=value),
        _hits,
        lambda hit, value: hit.kind in value["kind"]["in"],
        st.lists(st.sampled_from(["turn", "fact", "procedure"]), max_size=3).map(
            lambda kinds: {"kind": {"in": kinds}}
        ),
        {"kind": {"in": ["fact"]}},
        (
            *("kind", ["kind"], 5, [{"kind": "fact"}], {"nothing": 1}, {5: 1}, {"$ne": None}),
            *({"kind": {"like": "f%"}}, {"kind": {"in": "fact"}}, {"outcome": "splendid"}),
            *({"trust": float("nan")}, {"occurred_at": {"ge": "soon"}}, {"tags": "\x00"}),
        ),
    ),
    Filter(
        "pattern",
        lambda memory, scope, value, _limit: _keys(memory, scope, value),
        _keys,
        fnmatchcase,
        st.sampled_from(["*", "plan*", "p?an", "*.b", "", "\u00e9", "pla", "plan", "[p]*"]),
        "*",
        (5, None, b"*", ["*"], "\ud800"),
        no_limits=(),
    ),
)
"""Everything that narrows an answer, on scopes that hold what `TYPES`, `OBJECTS` and `KEYS` say."""


async def assert_applied(
    narrowing: Filter, memory: MemoryManager, scope: Scope, value: Any, limit: int = LIMIT
) -> None:
    """What comes back is what fits in memory, in the order of the whole, and no more than asked."""
    whole = await narrowing.whole(memory, scope)
    fitting = [one for one in whole if narrowing.fits(one, value)]

    found = await narrowing.ask(memory, scope, value, LIMIT)
    some = await narrowing.ask(memory, scope, value, limit)

    assert whole, "nothing can be told of a filter over nothing"
    told = f"{narrowing}={value!r} finds something else than fits"
    assert _named(found) == _named(fitting), told
    if narrowing.whole is _hits:
        # Who asks for more is shown what lies farther, and that moves near-equals.
        assert len(some) == min(limit, len(fitting)), f"{told}, where {limit} were asked for"
        assert {*_named(some)} <= {*_named(fitting)}, f"{told}, where {limit} were asked for"
    elif narrowing.no_limits:
        assert _named(some) == _named(fitting)[:limit], f"{told}, where {limit} were asked for"


def _named(items: Sequence[Any]) -> list[Any]:
    """What the items are, whenever they were asked for: a score falls as time goes on."""
    return [getattr(one, "id", one) for one in items]


def assert_counted(
    counts: Mapping[str, int], before: Mapping[str, list[str]], after: Mapping[str, list[str]]
) -> None:
    """The counts of a reply are those of the rows that went, by kind, and there are some."""
    went = {
        kind: len(before.get(table, ())) - len(after.get(table, ()))
        for kind, table in _TABLES.items()
    }
    assert any(went.values()), "nothing went"
    told = {kind: count for kind, count in went.items() if count}
    assert told == dict(counts), f"{dict(counts)} was told, {told} went"
