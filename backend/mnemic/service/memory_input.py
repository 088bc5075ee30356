"""What a caller gives with a memory, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any, TypedDict, Unpack, cast

from mnemic.errors import InvalidInput
from mnemic.model.episode import Outcome
from mnemic.model.fact import FactCreate
from mnemic.model.normalise import checked_time, checked_unit, clean_text, shown
from mnemic.model.trust import Trust
from mnemic.service.parsing import (
    changes,
    checked_fact,
    checked_flag,
    checked_idempotency_key,
    checked_metadata,
    checked_outcome,
    checked_source,
    checked_tags,
    checked_trust,
)
from mnemic.service.tools import Tools
from mnemic.service.working import checked_ttl
from mnemic.store.working.keys import checked_key

__all__ = ["MEMORY_TYPES", "Memory", "MemoryOptions", "parse_fact", "parse_memory"]

MEMORY_TYPES = ("semantic", "episodic", "procedural", "working")


class MemoryOptions(TypedDict, total=False):
    """What may be told of a memory beside its content; `importance` lies in [0, 1].

    The same `idempotency_key` with the same content has one effect and one answer. `lift` takes
    back a value that was retracted or forgotten here; the lifting is audited. `key` and
    `ttl_seconds` are for working memory alone.
    """

    idempotency_key: str | None
    lift: bool
    importance: float | None
    outcome: Outcome | str | None
    occurred_at: datetime | None
    metadata: Mapping[str, Any] | None
    tags: Sequence[str] | None
    trust: Trust
    source: str
    key: str | None
    ttl_seconds: float | None


_OPTIONS = frozenset(MemoryOptions.__annotations__)
_NOT_KEPT: Mapping[str, tuple[str, ...]] = {
    "semantic": ("outcome",),
    "episodic": (),
    "procedural": ("importance", "outcome", "occurred_at"),
    "working": (
        *("importance", "outcome", "occurred_at", "metadata", "tags"),
        *("trust", "source"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What is to be remembered, checked."""

    content: str
    memory_type: str
    occurred_at: datetime
    importance: float | None = None
    outcome: Outcome | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    key: str | None = None
    lift: bool = False
    trust: Trust = Trust.USER
    source: str = "caller"
    working_key: str | None = None
    ttl_seconds: float | None = None
    notes: tuple[str, ...] = ()


def parse_memory(
    tools: Tools, content: str, memory_type: str, **given: Unpack[MemoryOptions]
) -> Memory:
    """The memory if it can be held.

    Raises `InvalidInput` that names the field, `TypeError` for an option that does not exist.
    """
    if memory_type not in MEMORY_TYPES:
        raise InvalidInput(
            f"must be one of {', '.join(MEMORY_TYPES)}, not {shown(memory_type)}",
            field="memory_type",
        )
    longest = tools.settings.limits.text_chars_max
    text = clean_text(content, field="content", chars_max=longest)
    return _with_options(tools, text, memory_type, **given)


def _with_options(
    tools: Tools, content: str, memory_type: str, **given: Unpack[MemoryOptions]
) -> Memory:
    if unknown := given.keys() - _OPTIONS:
        message = f"unknown option {min(unknown)!r}; there are {', '.join(sorted(_OPTIONS))}"
        raise TypeError(message)
    own = [name for name in ("key", "ttl_seconds") if given.get(name) is not None]
    if own and memory_type != "working":
        raise InvalidInput("is for working memory alone; leave it out", field=own[0])
    limits = tools.settings.limits
    occurred_at = given.get("occurred_at")
    importance = given.get("importance")
    memory = Memory(
        content=content,
        memory_type=memory_type,
        occurred_at=tools.now()
        if occurred_at is None
        else checked_time(occurred_at, field="occurred_at"),
        importance=None if importance is None else checked_unit(importance, field="importance"),
        outcome=checked_outcome(given.get("outcome")),
        metadata=checked_metadata(
            {} if given.get("metadata") is None else given["metadata"], limits
        ),
        tags=checked_tags(() if given.get("tags") is None else given["tags"], limits),
        key=checked_idempotency_key(given.get("idempotency_key")),
        lift=checked_flag(given.get("lift", False), field="lift"),
        trust=checked_trust(given.get("trust", Trust.USER)),
        source=checked_source(given.get("source", "caller")),
        working_key=_working_key(tools, given.get("key")),
        ttl_seconds=_working_ttl(tools, given.get("ttl_seconds")),
    )
    return replace(memory, notes=_notes(memory, given))


def _working_key(tools: Tools, key: object) -> str | None:
    if key is not None:
        checked_key(key, bytes_max=tools.settings.working.key_bytes_max)
    return cast("str | None", key)


def _working_ttl(tools: Tools, ttl_seconds: object) -> float | None:
    checked_ttl(ttl_seconds, tools.settings.working)
    return cast("float | None", ttl_seconds)


def _notes(memory: Memory, given: MemoryOptions) -> tuple[str, ...]:
    """What is kept in another form than it came, and what this type of memory does not keep."""
    told = {name: given[name] for name in ("outcome", "tags", "source") if name in given}
    kept = changes(SimpleNamespace(**told), memory)
    none: tuple[object, ...] = (None, (), [], {})
    left_out = [
        f"{name} is not kept with {memory.memory_type} memory"
        for name in _NOT_KEPT[memory.memory_type]
        if given.get(name) not in none
    ]
    return (*kept, *left_out)


def parse_fact(tools: Tools, fact: FactCreate, **given: Unpack[MemoryOptions]) -> Memory:
    """What is told with a stated fact; its own trust and source unless told otherwise.

    Raises as `parse_memory` does.
    """
    told = checked_fact(fact, tools.settings.limits)
    content = told.content or f"{fact.subject} {fact.predicate} {fact.object}"
    own: MemoryOptions = {"trust": told.trust, "source": told.source, **given}
    return _with_options(tools, content, "semantic", **own)
