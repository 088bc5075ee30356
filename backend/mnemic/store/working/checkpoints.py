"""Checkpoints: everything that a scope held, in one row of PostgreSQL."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.errors import NotFound
from mnemic.model.scope import Scope
from mnemic.model.working import WorkingCheckpoint
from mnemic.store.statement import Statement
from mnemic.store.working.keys import field_of_text, text_of_field
from mnemic.store.working.place import Entry, Expiry, Snapshot, State

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["add", "drop", "listed", "load"]

_FORMAT = 1

ADD = Statement("""
    INSERT INTO mnemic.working_checkpoints (tenant_id, id, scope_id, "values", reason, created_at)
    VALUES (:tenant, :id, :scope, :held, :reason, :now)
""")
KEEP_NEWEST = Statement("""
    DELETE FROM mnemic.working_checkpoints c
     WHERE {keyed:c} AND c.id IN (
       SELECT x.id FROM mnemic.working_checkpoints x
        WHERE {owned:x} AND x.reason = :reason
        ORDER BY x.created_at DESC, x.id DESC OFFSET :keep)
""")
LOAD = Statement("""
    SELECT c."values" AS held FROM mnemic.working_checkpoints c WHERE {keyed:c} AND c.id = :id
""")
LISTED = Statement("""
    SELECT c.id, c.created_at, c.reason FROM mnemic.working_checkpoints c
     WHERE {owned:c} ORDER BY c.created_at DESC, c.id DESC
""")
DROP = Statement("DELETE FROM mnemic.working_checkpoints c WHERE {owned:c}")


async def add(
    unit: Unit,
    scope: Scope,
    identity: UUID,
    held: Snapshot,
    *,
    reason: str,
    now: datetime,
    keep: int,
) -> None:
    """The checkpoint is kept; of its reason, the newest `keep` are."""
    await unit.scopes.ensure(scope)
    await unit.execute(
        ADD, id=identity, scope=scope.id, held=_to_json(held), reason=reason, now=now
    )
    await unit.execute(KEEP_NEWEST, scopes=[scope.id], reason=reason, keep=keep)


async def load(unit: Unit, scope: Scope, identity: UUID) -> Snapshot:
    """What the scope held. Raises `NotFound`, also for a checkpoint of another scope."""
    row = await unit.fetch_one(LOAD, scopes=[scope.id], id=identity)
    if row is None:
        raise NotFound("No such checkpoint in this scope.", id=identity)
    return _from_json(row["held"])


async def listed(unit: Unit, scope: Scope) -> list[WorkingCheckpoint]:
    """The checkpoints of the scope, newest first."""
    rows = await unit.fetch(LISTED, scopes=[scope.id])
    return [
        WorkingCheckpoint(id=row["id"], created_at=row["created_at"], reason=row["reason"])
        for row in rows
    ]


async def drop(unit: Unit, scope: Scope) -> None:
    """The checkpoints of the scope are gone."""
    await unit.execute(DROP, scopes=[scope.id])


def _to_json(held: Snapshot) -> dict[str, Any]:
    # Values are kept as text, so that nothing of them is rewritten.
    return {
        "format": _FORMAT,
        "entries": [
            [
                text_of_field(entry.field),
                entry.expires_ms,
                entry.expiry.value,
                entry.state.value,
                entry.body.decode(),
            ]
            for entry in held.entries
        ],
        "notes": list(held.notes),
    }


def _from_json(values: dict[str, Any]) -> Snapshot:
    entries = []
    for text, expires_ms, expiry, state, value in values["entries"]:
        field, body = field_of_text(text), value.encode()
        entries.append(
            Entry(
                field=field,
                version=0,
                expires_ms=expires_ms,
                expiry=Expiry(expiry),
                state=State(state),
                body=body,
                size=len(field) - 1 + len(body),
            )
        )
    return Snapshot(tuple(entries), tuple(values["notes"]))
