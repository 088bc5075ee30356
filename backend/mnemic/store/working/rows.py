"""The statements of working memory, and what their rows mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mnemic.model.scope import Scope
from mnemic.store.statement import Statement
from mnemic.store.working.jsonb import body_of_jsonb, jsonb_of_body
from mnemic.store.working.keys import entry_id, field_digest, field_of_text, text_of_field
from mnemic.store.working.place import Entry, Expiry, Snapshot, State
from mnemic.store.working.stamps import Moment

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = [
    "Head",
    "add_notes",
    "delete_all",
    "delete_notes",
    "delete_row",
    "drop",
    "entry_of",
    "everything",
    "known",
    "lock",
    "moment_of",
    "notes",
    "purge",
    "put_rows",
    "recount",
    "set_head",
    "snapshot",
    "stored",
    "totals",
]

_COLUMNS = "w.key, w.version, w.expires_at, w.expiry, w.bytes, w.deleted"

# The age is the server's own, so that no clock of ours can shorten a wait that rests on it.
GET = Statement(f"""
    SELECT {_COLUMNS}, w.value::text AS value,
           CAST(extract(epoch FROM clock_timestamp() - w.created_at) AS float8) AS age
      FROM mnemic.working_memory w WHERE {{owned:w}} AND w.key_digest = :digest
""")
# Entries and notes in one statement, so that they are of one moment.
ALL = Statement(f"""
    SELECT {_COLUMNS}, w.value::text AS value, CAST(NULL AS text) AS note, CAST(0 AS bigint) AS seq
      FROM mnemic.working_memory w WHERE {{owned:w}}
     UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, n.text, n.seq
      FROM mnemic.working_notes n
      JOIN mnemic.working_heads h ON {{owned:h}} AND h.scope_id = n.scope_id
     WHERE {{owned:n}} AND h.notes_expire_at > :now
     ORDER BY seq
""")
KNOWN = Statement(f"SELECT {_COLUMNS} FROM mnemic.working_memory w WHERE {{owned:w}}")

PUT = Statement("""
    INSERT INTO mnemic.working_memory AS w
           (tenant_id, id, scope_id, scope_type, key, key_digest, value, version, expires_at,
            expiry, bytes, deleted, updated_at)
    VALUES (:tenant, :id, :scope, CAST(CAST(:level AS text) AS mnemic.scope_type), :key, :digest,
            CAST(CAST(:value AS text) AS jsonb), :version, :expires_at, :expiry, :bytes, :deleted,
            :now)
    ON CONFLICT (tenant_id, scope_id, key_digest) DO UPDATE
       SET value = excluded.value, version = excluded.version, expires_at = excluded.expires_at,
           expiry = excluded.expiry, bytes = excluded.bytes, deleted = excluded.deleted,
           updated_at = excluded.updated_at
""")
DELETE = Statement("""
    DELETE FROM mnemic.working_memory w WHERE {owned:w} AND w.key_digest = :digest
""")
DELETE_ALL = Statement("DELETE FROM mnemic.working_memory w WHERE {owned:w}")
TOTALS = Statement("""
    SELECT count(*) FILTER (WHERE w.key <> '') AS keys, coalesce(sum(w.bytes), 0) AS bytes
      FROM mnemic.working_memory w
     WHERE {owned:w} AND NOT w.deleted AND (w.expires_at IS NULL OR w.expires_at > :now)
""")
# What has expired is kept for its version as long as an outage can still be merged.
PURGE = Statement("""
    DELETE FROM mnemic.working_memory w
     WHERE {tenant:w} AND w.id IN (
       SELECT x.id FROM mnemic.working_memory x
        WHERE {tenant:x} AND x.expires_at < :before ORDER BY x.expires_at LIMIT :limit)
""")
# The head goes with its notes, else the tenant stays due. The bound is asked twice, as whoever
# wrote a note meanwhile has put it off.
PURGE_NOTES = Statement("""
    WITH ended AS (
      UPDATE mnemic.working_heads h
         SET notes = 0, notes_bytes = 0, notes_expire_at = NULL
       WHERE {tenant:h} AND h.notes_expire_at < :before AND h.scope_id IN (
         SELECT x.scope_id FROM mnemic.working_heads x
          WHERE {tenant:x} AND x.notes_expire_at < :before
          ORDER BY x.notes_expire_at LIMIT :limit)
      RETURNING h.scope_id
    )
    DELETE FROM mnemic.working_notes n USING ended e
     WHERE {tenant:n} AND n.scope_id = e.scope_id
""")
PURGE_SCOPE = Statement("""
    DELETE FROM mnemic.working_memory w WHERE {owned:w} AND w.expires_at < :before
""")

LOCK = Statement("""
    INSERT INTO mnemic.working_heads AS h (tenant_id, scope_id) VALUES (:tenant, :scope)
    ON CONFLICT (tenant_id, scope_id) DO UPDATE SET scope_id = excluded.scope_id
    RETURNING h.keys, h.bytes, h.notes, h.notes_bytes, h.notes_expire_at, h.floor, h.fence,
              h.restored
""")
LOCKED = Statement("SELECT FROM mnemic.working_heads h WHERE {owned:h} FOR UPDATE")
DELETE_HEAD = Statement("DELETE FROM mnemic.working_heads h WHERE {owned:h}")
SET_HEAD = Statement("""
    UPDATE mnemic.working_heads h
       SET keys = :keys, bytes = :bytes, notes = :notes, notes_bytes = :notes_bytes,
           notes_expire_at = :notes_expire_at, floor = :floor, fence = :fence, restored = :restored
     WHERE {owned:h}
""")
ADD_NOTES = Statement("""
    INSERT INTO mnemic.working_notes (tenant_id, scope_id, seq, text, recorded_at)
    SELECT :tenant, :scope, n.seq, n.text, :now
      FROM unnest(CAST(:seqs AS bigint[]), CAST(:texts AS text[])) AS n(seq, text)
""")
NOTES = Statement("""
    SELECT n.text FROM mnemic.working_notes n
      JOIN mnemic.working_heads h ON {owned:h} AND h.scope_id = n.scope_id
     WHERE {owned:n} AND h.notes_expire_at > :now
     ORDER BY n.seq
""")
DELETE_NOTES = Statement("DELETE FROM mnemic.working_notes n WHERE {owned:n}")


@dataclass(slots=True)
class Head:
    """What a scope holds; `keys` and `bytes` are never too small, as expiry is not counted out."""

    keys: int
    bytes: int
    notes: int
    notes_bytes: int
    notes_expire_at: datetime | None
    floor: int
    fence: int
    restored: int


def moment_of(milliseconds: int) -> datetime | None:
    """The instant; nothing for 0."""
    return datetime.fromtimestamp(milliseconds / 1_000, UTC) if milliseconds else None


def entry_of(row: Any) -> Entry:
    """The entry of a row; with its value if the row has one."""
    expires_at: datetime | None = row["expires_at"]
    text = row.get("value")
    return Entry(
        field=field_of_text(row["key"]),
        version=row["version"],
        expires_ms=round(expires_at.timestamp() * 1_000) if expires_at else 0,
        expiry=Expiry(row["expiry"]),
        state=State.DELETED if row["deleted"] else State.DURABLE,
        body=body_of_jsonb(text) if text is not None and not row["deleted"] else b"",
        size=row["bytes"],
    )


async def stored(unit: Unit, scope: Scope, field: bytes) -> tuple[Entry | None, float]:
    """The entry as it stands, live or not, and for how many seconds its row has been there."""
    row = await unit.fetch_one(GET, scopes=[scope.id], digest=field_digest(field))
    return (entry_of(row), row["age"]) if row is not None else (None, 0.0)


async def everything(unit: Unit, scope: Scope, at: Moment) -> Snapshot:
    """Every entry, live or not, and the notes."""
    read = await unit.fetch(ALL, scopes=[scope.id], now=moment_of(at.now_ms))
    entries = [entry_of(row) for row in read if row["note"] is None]
    entries.sort(key=lambda entry: entry.field)
    return Snapshot(tuple(entries), tuple(row["note"] for row in read if row["note"] is not None))


async def snapshot(unit: Unit, scope: Scope, at: Moment) -> Snapshot:
    """Everything that is live."""
    held = await everything(unit, scope, at)
    return Snapshot(tuple(one for one in held.entries if one.is_live(at.now_ms)), held.notes)


async def known(unit: Unit, scope: Scope) -> list[Entry]:
    """Every entry without its value, live or not."""
    return [entry_of(row) for row in await unit.fetch(KNOWN, scopes=[scope.id])]


async def put_rows(unit: Unit, scope: Scope, entries: Iterable[Entry], now: datetime) -> None:
    """The entries stand as they are given."""
    listed: list[dict[str, object]] = [
        {
            "id": entry_id(scope.id, entry.field),
            "scope": scope.id,
            "level": scope.level.value,
            "key": text_of_field(entry.field),
            "digest": field_digest(entry.field),
            "value": jsonb_of_body(entry.body) if entry.body else "null",
            "version": entry.version,
            "expires_at": moment_of(entry.expires_ms),
            "expiry": entry.expiry.value,
            "bytes": entry.size,
            "deleted": entry.state is State.DELETED,
            "now": now,
        }
        for entry in entries
    ]
    await unit.execute_many(PUT, listed)


async def delete_row(unit: Unit, scope: Scope, field: bytes) -> None:
    """The entry is gone."""
    await unit.execute(DELETE, scopes=[scope.id], digest=field_digest(field))


async def delete_all(unit: Unit, scope: Scope) -> None:
    """Entries and notes are gone."""
    await unit.execute(DELETE_ALL, scopes=[scope.id])
    await delete_notes(unit, scope)


async def delete_notes(unit: Unit, scope: Scope) -> None:
    """The notes are gone."""
    await unit.execute(DELETE_NOTES, scopes=[scope.id])


async def totals(unit: Unit, scope: Scope, now: datetime) -> tuple[int, int]:
    """How many live keys there are, and the bytes of all live entries."""
    row = await unit.fetch_one(TOTALS, scopes=[scope.id], now=now)
    return (int(row["keys"]), int(row["bytes"])) if row is not None else (0, 0)


async def recount(unit: Unit, scope: Scope, head: Head, now: datetime, before: datetime) -> None:
    """The head counts exactly; rows that expired before `before` are gone."""
    await unit.execute(PURGE_SCOPE, scopes=[scope.id], before=before)
    head.keys, head.bytes = await totals(unit, scope, now)


async def purge(unit: Unit, *, before: datetime, limit: int) -> int:
    """How many rows of the tenant, expired before then, are gone.

    At most `limit` entries, and the notes of as many scopes, whose heads say that they have none.
    """
    entries = await unit.execute(PURGE, before=before, limit=limit)
    return entries + await unit.execute(PURGE_NOTES, before=before, limit=limit)


async def lock(unit: Unit, scope: Scope) -> Head:
    """What the scope holds; nobody else writes in it until the unit is over."""
    await unit.scopes.ensure(scope)
    row = await unit.fetch_one(LOCK, scope=scope.id)
    if row is None:
        raise AssertionError(scope)
    return Head(**dict(row))


async def drop(unit: Unit, scope: Scope) -> None:
    """Entries, notes and the head are gone, once nobody writes in the scope any more."""
    if await unit.fetch_one(LOCKED, scopes=[scope.id]) is not None:
        await delete_all(unit, scope)
        await unit.execute(DELETE_HEAD, scopes=[scope.id])


async def set_head(unit: Unit, scope: Scope, head: Head) -> None:
    """The head says what it holds now."""
    await unit.execute(
        SET_HEAD,
        scopes=[scope.id],
        keys=head.keys,
        bytes=head.bytes,
        notes=head.notes,
        notes_bytes=head.notes_bytes,
        notes_expire_at=head.notes_expire_at,
        floor=head.floor,
        fence=head.fence,
        restored=head.restored,
    )


async def add_notes(
    unit: Unit, scope: Scope, head: Head, texts: Iterable[str], now: datetime
) -> None:
    """The notes stand at the end, in their order; the head is to be set."""
    listed = list(texts)
    seqs = list(range(head.notes, head.notes + len(listed)))
    await unit.execute(ADD_NOTES, scope=scope.id, seqs=seqs, texts=listed, now=now)
    head.notes += len(listed)
    head.notes_bytes += sum(len(text.encode()) for text in listed)


async def notes(unit: Unit, scope: Scope, now: datetime) -> list[str]:
    """The notes in their order; none once they have expired."""
    rows = await unit.fetch(NOTES, scopes=[scope.id], now=now)
    return [row["text"] for row in rows]
