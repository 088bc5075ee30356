"""What a caller gives with a memory, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict, Unpack

from mnemic.errors import InvalidInput
from mnemic.model.episode import Outcome
from mnemic.model.fact import FactCreate
from mnemic.model.normalise import checked_time, checked_unit, clean_text
from mnemic.model.trust import Trust
from mnemic.service.parsing import (
    checked_key,
    checked_metadata,
    checked_outcome,
    checked_source,
    checked_tags,
    checked_trust,
)
from mnemic.service.tools import Tools

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


def parse_memory(
    tools: Tools, content: str, memory_type: str, **given: Unpack[MemoryOptions]
) -> Memory:
    """The memory if it can be held.

    Raises `InvalidInput` that names the field, `TypeError` for an option that does not exist.
    """
    if unknown := given.keys() - _OPTIONS:
        message = f"unknown option {min(unknown)!r}; there are {', '.join(sorted(_OPTIONS))}"
        raise TypeError(message)
    if memory_type not in MEMORY_TYPES:
        raise InvalidInput(
            f"must be one of {', '.join(MEMORY_TYPES)}, not {memory_type!r}", field="memory_type"
        )
    own = [name for name in ("key", "ttl_seconds") if given.get(name) is not None]
    if own and memory_type != "working":
        raise InvalidInput("is for working memory alone", field=own[0])
    limits = tools.settings.limits
    occurred_at = given.get("occurred_at")
    importance = given.get("importance")
    return Memory(
        content=clean_text(content, field="content", chars_max=limits.text_chars_max),
        memory_type=memory_type,
        occurred_at=tools.now()
        if occurred_at is None
        else checked_time(occurred_at, field="occurred_at"),
        importance=None if importance is None else checked_unit(importance, field="importance"),
        outcome=checked_outcome(given.get("outcome")),
        metadata=checked_metadata(
            {} if given.get("metadata") is None else given["metadata"], limits
        ),
        tags=checked_tags(given.get("tags") or (), limits),
        key=checked_key(given.get("idempotency_key")),
        lift=_checked_flag(given.get("lift", False)),
        trust=checked_trust(given.get("trust", Trust.USER)),
        source=checked_source(given.get("source", "caller")),
        working_key=given.get("key"),
        ttl_seconds=given.get("ttl_seconds"),
    )


def parse_fact(tools: Tools, fact: FactCreate, **given: Unpack[MemoryOptions]) -> Memory:
    """What is told with a stated fact; its own trust and source unless told otherwise.

    Raises as `parse_memory` does.
    """
    content = fact.content or f"{fact.subject} {fact.predicate} {fact.object}"
    own: MemoryOptions = {"trust": fact.trust, "source": fact.source, **given}
    return parse_memory(tools, content, "semantic", **own)


def _checked_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"must be true or false, not {value!r}", field="lift")
    return value
