"""Working memory: what may be held, and how it is written down."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from mnemic.errors import InvalidInput, NotFound
from mnemic.model.normalise import checked_json, clean_text, held_text
from mnemic.model.scope import Scope
from mnemic.model.working import TaskState, WorkingRecord
from mnemic.service.parsing import checked_flag, checked_given, checked_id
from mnemic.settings import WorkingSettings
from mnemic.store.working.faults import foreign
from mnemic.store.working.keys import TASK, checked_key, is_key, key_of
from mnemic.store.working.opening import WorkingPlaces
from mnemic.store.working.pattern import key_matcher
from mnemic.store.working.place import Put, Snapshot

__all__ = [
    "add_note",
    "checked_put",
    "checked_ttl",
    "get_task",
    "get_value",
    "keys_like",
    "put_task",
    "put_value",
    "read_working",
    "remove",
    "restore",
]


def checked_ttl(ttl_seconds: object, settings: WorkingSettings) -> int | None:
    """Milliseconds, rounded up; at most `working.ttl_max`."""
    if ttl_seconds is None:
        return None
    if isinstance(ttl_seconds, bool) or not isinstance(ttl_seconds, (int, float)):
        raise InvalidInput(
            f"must be a number of seconds, not {type(ttl_seconds).__name__}", field="ttl_seconds"
        )
    longest = settings.ttl_max.total_seconds()
    if not ttl_seconds > 0:  # NaN is not either
        raise InvalidInput(
            "must be more than 0; delete the key instead, or leave it out", field="ttl_seconds"
        )
    if ttl_seconds > longest:
        raise InvalidInput(
            f"is beyond {longest:.0f} seconds, the most; pass forever=True, or raise "
            "MEM_WORKING__TTL_MAX",
            field="ttl_seconds",
        )
    # Through the digits that are printed: 1.1 s are 1,100 ms, not a millisecond more.
    return math.ceil(Decimal(repr(float(ttl_seconds))) * 1_000)


def _body(value: object, settings: WorkingSettings, *, field: str = "value") -> bytes:
    body = orjson.dumps(checked_json(value, field=field))
    if len(body) > settings.value_bytes_max:
        raise InvalidInput(
            f"is {len(body)} bytes long as JSON; the most is {settings.value_bytes_max}. Split it, "
            "or raise MEM_WORKING__VALUE_BYTES_MAX",
            field=field,
        )
    return body


def _field(places: WorkingPlaces, key: object) -> bytes:
    return checked_key(key, bytes_max=places.settings.key_bytes_max)


def checked_put(
    places: WorkingPlaces,
    key: str,
    value: object,
    *,
    ttl_seconds: float | None,
    forever: bool = False,
    durable: bool | None = None,
) -> Put:
    """The value as it is put, if it can be held. Raises `InvalidInput` that names the field."""
    checked_flag(forever, field="forever")
    if durable is not None:
        checked_flag(durable, field="durable")
    if forever and ttl_seconds is not None:
        raise InvalidInput("must not be given with forever=True", field="ttl_seconds")
    return Put(
        field=_field(places, key),
        body=_body(value, places.settings),
        ttl_ms=checked_ttl(ttl_seconds, places.settings),
        forever=forever,
        durable=durable,
    )


async def put_value(
    places: WorkingPlaces,
    scope: Scope,
    key: str,
    value: object,
    *,
    ttl_seconds: float | None,
    forever: bool,
    durable: bool | None,
) -> None:
    """The key holds the value."""
    put = checked_put(places, key, value, ttl_seconds=ttl_seconds, forever=forever, durable=durable)
    await places.place.put(scope, put, places.now())


async def get_value(places: WorkingPlaces, scope: Scope, key: str, default: Any) -> Any:
    """What the key holds, or `default` when there is none such."""
    entry = await places.place.get(scope, _field(places, key), places.now())
    return _held(entry.body) if entry is not None else default


async def remove(places: WorkingPlaces, scope: Scope, key: str) -> bool:
    """Whether there was such a key."""
    return await places.place.delete(scope, _field(places, key), places.now())


async def keys_like(places: WorkingPlaces, scope: Scope, pattern: str) -> list[str]:
    """The keys that match, sorted."""
    matches = key_matcher(pattern)
    fields = await places.place.fields(scope, places.now())
    return [key for field in fields if is_key(field) and matches(key := key_of(field))]


async def put_task(places: WorkingPlaces, scope: Scope, state: TaskState) -> None:
    """The task stands so."""
    checked_given(state, TaskState, field="state")
    put = Put(field=TASK, body=_body(state.to_json(), places.settings, field="state"))
    await places.place.put(scope, put, places.now())


async def get_task(places: WorkingPlaces, scope: Scope) -> TaskState | None:
    """How the task stands."""
    entry = await places.place.get(scope, TASK, places.now())
    return _task(entry.body) if entry is not None else None


async def add_note(places: WorkingPlaces, scope: Scope, content: str) -> None:
    """The scratchpad ends with the content."""
    text = clean_text(
        content, field="content", chars_max=places.settings.scratchpad_entry_chars_max
    )
    await places.place.append(scope, text, places.now())


async def restore(places: WorkingPlaces, scope: Scope, checkpoint_id: str | UUID) -> None:
    """The scope holds what it held then. Raises `NotFound`."""
    if isinstance(checkpoint_id, str):
        held_text(checkpoint_id, field="checkpoint_id")
    try:
        checkpoint = checked_id(checkpoint_id, field="checkpoint_id")
    except InvalidInput:
        if not isinstance(checkpoint_id, str):
            raise
        raise NotFound("No such checkpoint in this scope.") from None
    await places.place.restore(scope, checkpoint, places.now())


async def read_working(places: WorkingPlaces, scope: Scope) -> WorkingRecord:
    """Everything that the scope holds, read at one moment."""
    return _record(await places.place.snapshot(scope, places.now()))


def _held(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise foreign() from None


def _task(body: bytes) -> TaskState:
    try:
        return TaskState.from_json(_held(body))
    except (TypeError, InvalidInput):
        raise foreign() from None


def _record(held: Snapshot) -> WorkingRecord:
    values = {key_of(one.field): _held(one.body) for one in held.entries if is_key(one.field)}
    tasks = [_task(one.body) for one in held.entries if one.field == TASK]
    return WorkingRecord(
        values=values,
        task_state=tasks[0] if tasks else None,
        scratchpad=held.notes,
    )
