"""Whether the servers, the schema, the model and the disk are fit, with a remedy for what is not.

Every check stands alone: a server that is away fails its own checks, and the others go on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mnemic.errors import MnemicError, SchemaMismatch, Unavailable
from mnemic.model.embedding import Embedder
from mnemic.service.doctor_placement import partitions_told, promoted_told, unused_told
from mnemic.settings import DatabaseSettings
from mnemic.store.connecting import connected
from mnemic.store.inspection import (
    SERVER_VERSION_MIN,
    VECTOR_VERSION_MIN,
    Inspection,
    RoleFacts,
    ServerFacts,
    TableFacts,
    inspect,
)
from mnemic.store.placement import placement
from mnemic.store.pooling import Pooling, pooling_of
from mnemic.store.revisions import Revision
from mnemic.store.unit import Database
from mnemic.store.valkey import VERSIONS_MIN, ValkeyFacts, valkey_facts

__all__ = ["Finding", "Patient", "Verdict", "examine", "failure"]

EXTENSIONS = ("btree_gin", "pg_trgm", "vector")
FREE_BYTES_MIN = 200 * 1_048_576
FREE_BYTES_WARNED = 1_024 * 1_048_576
NAMED_MAX = 5
_POOLING = {
    Pooling.NONE: "none, the URL leads to the server itself",
    Pooling.SESSION: "in session mode: each of our connections keeps one of the server's",
    Pooling.TRANSACTION: "in transaction mode",
    Pooling.STATEMENT: "in statement mode, which refuses transactions",
    Pooling.UNKNOWN: "too busy to tell its mode",
}
_DUE_MAX = 10_000
_PROBE = "A sentence to see whether the model answers."


class Verdict(StrEnum):
    """What is to be done about a finding: nothing, sometime, now."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found; a remedy unless all is well."""

    check: str
    verdict: Verdict
    detail: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """What is examined. `data_dir` is the folder of embedded servers, if there are any.

    `embeds_database` tells whether the database is one of them: its schema is brought up by itself.
    `open_embedder` may raise what the settings deserve.
    """

    database_url: str | None
    redis_url: str | None
    data_dir: Path | None
    embeds_database: bool
    database: DatabaseSettings
    open_embedder: Callable[[], Embedder]


async def examine(patient: Patient) -> list[Finding]:
    """Every finding, in a fixed order. Nothing is changed, and nothing is raised."""
    findings: list[Finding] = []
    if patient.database_url is not None:
        findings += await _database(patient, patient.database_url)
    if patient.redis_url is not None:
        findings += await _valkey(patient.redis_url)
    findings += await _embedder(patient)
    if patient.data_dir is not None:
        findings.append(_disk(patient.data_dir))
    return findings


def failure(check: str, fault: MnemicError) -> Finding:
    """A check that could not be made."""
    detail, _, remedy = str(fault).partition("; ")
    retry = (
        "start the server, or correct its URL" if isinstance(fault, Unavailable) else "see above"
    )
    return Finding(check=check, verdict=Verdict.FAIL, detail=detail, remedy=remedy or retry)


async def _database(patient: Patient, url: str) -> list[Finding]:
    try:
        async with connected(url, setting="MEM_DATABASE_URL") as connection:
            found = await inspect(connection)
            placed = await placement(connection)
        pooling = await pooling_of(url, setting="MEM_DATABASE_URL")
    except SchemaMismatch as fault:
        return [failure("schema", fault)]
    except MnemicError as fault:
        return [failure("PostgreSQL", fault)]
    findings = [
        _server(found.server),
        _pooler(pooling, is_expected=patient.database.pgbouncer),
        _extensions(found.server),
        _durability(found.server, is_required=patient.database.require_durable),
        _role(found.role),
        _schema(found.revision, upgrades_itself=patient.embeds_database),
    ]
    if found.revision.current is not None:
        findings += [_row_security(found), _rules(found), _indexes(found)]
        findings += [
            _told("promoted", *promoted_told(placed)),
            _told("unused", *unused_told(placed)),
            _told("partitions", *partitions_told(placed)),
        ]
    return findings


def _server(server: ServerFacts) -> Finding:
    size = f"{server.database_bytes / 1_048_576:.0f} MiB in {server.database}"
    detail = f"{server.version}, {size}"
    if server.version_number < SERVER_VERSION_MIN:
        return _fail("PostgreSQL", detail, "use PostgreSQL 16 or later")
    if server.is_replica:
        return _fail("PostgreSQL", f"{detail}, a read-only replica", "name the primary server")
    return _ok("PostgreSQL", detail)


def _pooler(pooling: Pooling, *, is_expected: bool) -> Finding:
    detail = _POOLING[pooling]
    if pooling is Pooling.NONE:
        remedy = "unset MEM_DATABASE__PGBOUNCER: every statement is planned twice for it"
        return _warn("pooler", detail, remedy) if is_expected else _ok("pooler", detail)
    if pooling is Pooling.STATEMENT:
        return _fail("pooler", detail, "set pool_mode = transaction, which we need")
    if not is_expected:
        return _fail("pooler", detail, "set MEM_DATABASE__PGBOUNCER=true: it drops our settings")
    if pooling is Pooling.TRANSACTION:
        return _ok("pooler", detail)
    return _warn("pooler", detail, "set pool_mode = transaction, or a larger default_pool_size")


def _extensions(server: ServerFacts) -> Finding:
    has = server.extensions
    detail = ", ".join(f"{name} {has.get(name, 'missing')}" for name in EXTENSIONS)
    if any(name not in has for name in EXTENSIONS):
        return _fail("extensions", detail, "run `mnemic db init`")
    if tuple(int(part) for part in has["vector"].split(".")[:2]) < VECTOR_VERSION_MIN:
        return _fail(
            "extensions",
            detail,
            "install pgvector 0.8 or later, then ALTER EXTENSION vector UPDATE",
        )
    return _ok("extensions", detail)


def _durability(server: ServerFacts, *, is_required: bool) -> Finding:
    detail = (
        f"fsync {_switch(server.fsync)}, full_page_writes {_switch(server.full_page_writes)}, "
        f"synchronous_commit {server.synchronous_commit}"
    )
    if not server.fsync or server.synchronous_commit == "off":
        made = _fail if is_required else _warn
        return made(
            "durability",
            detail,
            "set fsync and synchronous_commit on: acknowledged writes may be lost",
        )
    if not server.full_page_writes:
        return _warn(
            "durability", detail, "set full_page_writes on, unless the disk writes whole pages"
        )
    return _ok("durability", detail)


def _role(role: RoleFacts) -> Finding:
    powers = [
        word
        for word, has in (
            ("is a superuser", role.is_superuser),
            ("has BYPASSRLS", role.bypasses_row_security),
            ("owns tables of mnemic", bool(role.owns)),
        )
        if has
    ]
    remedy = "let MEM_DATABASE_URL log in as mnemic_app, which `mnemic db init` makes"
    if powers:
        return _fail("role", f"{role.name} {', '.join(powers)}: no policy holds it", remedy)
    if role.excess_rights:
        return _fail("role", f"{role.name} may {_named(role.excess_rights)}", remedy)
    if role.creates_roles or role.creates_databases:
        return _warn("role", f"{role.name} may create roles or databases", remedy)
    return _ok("role", f"{role.name}, held by every policy")


def _row_security(found: Inspection) -> Finding:
    owned = [table for table in found.tables if table.has_tenant and not table.is_partition]
    open_tables = [table.name for table in owned if not _is_walled(table)]
    if open_tables:
        return _fail(
            "row security",
            f"not forced on {_named(open_tables)}",
            "run `mnemic db check`, and restore what somebody has altered",
        )
    return _ok("row security", f"forced on {len(owned)} tables that hold a tenant's rows")


def _is_walled(table: TableFacts) -> bool:
    return table.row_security and table.is_forced and bool(table.policies)


def _rules(found: Inspection) -> Finding:
    if found.violations:
        return _fail(
            "catalogue",
            _named(found.violations),
            "run `mnemic db check`, and restore what somebody has altered",
        )
    return _ok("catalogue", "every table and function keeps the rules")


def _schema(revision: Revision, *, upgrades_itself: bool) -> Finding:
    if revision.is_head:
        return _ok("schema", f"revision {revision.current}, this release's")
    detail = f"revision {revision.current or 'none'}, this release needs {revision.head}"
    made = _warn if upgrades_itself else _fail
    return made("schema", detail, "run `mnemic db upgrade`")


def _indexes(found: Inspection) -> Finding:
    if found.invalid_indexes:
        first = found.invalid_indexes[0]
        return _fail(
            "indexes",
            f"unfinished: {_named(found.invalid_indexes)}",
            f"run REINDEX INDEX CONCURRENTLY mnemic.{first} as mnemic_owner, and so on",
        )
    if missing := found.missing_indexes:
        return _fail(
            "indexes",
            f"missing: {_named(tuple(missing))}",
            f"run as mnemic_owner: {'; '.join(list(missing.values())[:NAMED_MAX])}",
        )
    return _ok("indexes", "all there, all valid")


async def _valkey(url: str) -> list[Finding]:
    try:
        facts = await valkey_facts(url)
    except MnemicError as fault:
        return [failure("Valkey", fault)]
    return [_valkey_server(facts), _eviction(facts)]


def _valkey_server(facts: ValkeyFacts) -> Finding:
    least = VERSIONS_MIN[facts.product]
    detail = f"{facts.product} {facts.version_text}, answers in {facts.answer_ms:.1f} ms"
    if facts.version < least:
        return _fail("Valkey", detail, f"use {facts.product} {'.'.join(map(str, least))} or later")
    if facts.is_replica:
        return _fail("Valkey", f"{detail}, a replica", "name the primary server")
    if not facts.appends_to_file:
        return _warn(
            "Valkey",
            f"{detail}, without an append-only file",
            "set appendonly yes: a restart forgets",
        )
    return _ok("Valkey", f"{detail}, append-only file on")


def _eviction(facts: ValkeyFacts) -> Finding:
    room = f"of {facts.memory_max / 1_048_576:.0f} MiB" if facts.memory_max else "of no limit"
    detail = f"{facts.eviction_policy}, {facts.memory_used / 1_048_576:.1f} MiB used {room}"
    if facts.eviction_policy.startswith("allkeys"):
        return _fail(
            "eviction", detail, "set maxmemory-policy noeviction: memories are dropped in silence"
        )
    return _ok("eviction", detail)


async def _embedder(patient: Patient) -> list[Finding]:
    started = time.perf_counter()
    try:
        embedder = patient.open_embedder()
        try:
            vectors = await embedder.embed([_PROBE])
            signature = embedder.signature
        finally:
            await embedder.close()
    except MnemicError as fault:
        return [failure("embedder", fault)]
    took = (time.perf_counter() - started) * 1_000
    detail = f"{signature.key} gives {len(vectors[0])} numbers, first after {took:.0f} ms"
    findings = [_ok("embedder", detail)]
    if patient.database_url is not None:
        findings += await _vectors(patient, patient.database_url, signature.key)
    return findings


async def _vectors(patient: Patient, url: str, signature: str) -> list[Finding]:
    """Whether the stored vectors come from the model that is set; nothing if nobody can say."""
    database = Database(url, patient.database)
    try:
        live = await database.transact(None, lambda unit: unit.models.live(), read_only=True)
        if live is None:
            return [_ok("vectors", "none are stored yet")]
        if live.signature != signature:
            told = f"made with {live.signature}"
            return [_fail("vectors", told, "set MEM_EMBEDDING__MODEL back to it")]
        return [await _vectors_due(database, "made with the model that is set")]
    except MnemicError:
        return []
    finally:
        await database.close()


async def _vectors_due(database: Database, detail: str) -> Finding:
    """How many are to be made; nothing of it where the schema is of before, which is told apart."""
    try:
        due = await database.transact(
            None, lambda unit: unit.vectors.due(limit=_DUE_MAX), read_only=True
        )
    except MnemicError:
        return _ok("vectors", detail)
    if not due.missing and not due.stale:
        return _ok("vectors", detail)
    missing, stale = (
        f"{many:,}" if many < _DUE_MAX else f"{many:,} or more" for many in (due.missing, due.stale)
    )
    detail += f"; {missing} missing, {stale} turns to be embedded anew"
    return _warn("vectors", detail, "let the worker run: `embed_missing` makes them")


def _disk(folder: Path) -> Finding:
    there = next(one for one in (folder, *folder.parents) if one.exists())
    try:
        free = shutil.disk_usage(there).free
    except OSError as fault:
        return _fail("disk", f"{there}: {fault.strerror}", "name another MEM_EMBEDDED__DATA_DIR")
    detail = f"{free / 1_073_741_824:.1f} GiB free for {folder}"
    remedy = "free some space, or name a folder on another disk in MEM_EMBEDDED__DATA_DIR"
    if free < FREE_BYTES_MIN:
        return _fail("disk", detail, remedy)
    return _warn("disk", detail, remedy) if free < FREE_BYTES_WARNED else _ok("disk", detail)


def _told(check: str, detail: str, remedy: str | None) -> Finding:
    return _ok(check, detail) if remedy is None else _warn(check, detail, remedy)


def _ok(check: str, detail: str) -> Finding:
    return Finding(check=check, verdict=Verdict.OK, detail=detail)


def _warn(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, verdict=Verdict.WARN, detail=detail, remedy=remedy)


def _fail(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, verdict=Verdict.FAIL, detail=detail, remedy=remedy)


def _switch(is_on: bool) -> str:  # noqa: FBT001 - a word for it
    return "on" if is_on else "off"


def _named(names: list[str] | tuple[str, ...]) -> str:
    rest = len(names) - NAMED_MAX
    return "; ".join(names[:NAMED_MAX]) + (f"; and {rest} more" if rest > 0 else "")
