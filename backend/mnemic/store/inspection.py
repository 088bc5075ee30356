"""What a database says about itself: the facts for `mnemic doctor` and for the check at start-up.

Everything is asked over one connection, as the role that serves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mnemic.store.connecting import is_pooled
from mnemic.store.revisions import Revision, revision_of
from mnemic.store.roles import SERVER_VERSION_MIN, VECTOR_VERSION_MIN

__all__ = [
    "SERVER_VERSION_MIN",
    "VECTOR_VERSION_MIN",
    "FunctionFacts",
    "Inspection",
    "RoleFacts",
    "ServerFacts",
    "Shortcoming",
    "TableFacts",
    "function_facts",
    "inspect",
    "invalid_indexes",
    "missing_indexes",
    "role_facts",
    "server_facts",
    "shortcomings",
    "table_facts",
]

_SERVER = """
SELECT current_setting('server_version') AS version,
       current_setting('server_version_num')::int AS version_number,
       current_database()::text AS database,
       pg_database_size(current_database()) AS database_bytes,
       current_setting('fsync')::bool AS fsync,
       current_setting('full_page_writes')::bool AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       pg_is_in_recovery() AS is_replica
"""
_EXTENSIONS = "SELECT extname, extversion FROM pg_extension ORDER BY extname"

_ROLE = """
SELECT r.rolname::text AS name, r.rolsuper AS is_superuser, r.rolbypassrls AS bypasses_row_security,
       r.rolcreaterole AS creates_roles, r.rolcreatedb AS creates_databases,
       ARRAY(SELECT g.rolname::text FROM pg_roles g
              WHERE g.oid <> r.oid AND pg_has_role(r.oid, g.oid, 'MEMBER') ORDER BY 1) AS member_of,
       ARRAY(SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
              WHERE n.nspname = 'mnemic' AND c.relkind IN ('r', 'p')
                AND pg_has_role(r.oid, c.relowner, 'USAGE') ORDER BY 1) AS owns,
       ARRAY(SELECT p.word || ' on ' || c.relname
               FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
                    unnest(ARRAY['TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p (word)
              WHERE n.nspname = 'mnemic' AND c.relkind IN ('r', 'p')
                AND has_table_privilege(r.oid, c.oid, p.word) ORDER BY 1) AS excess_rights
  FROM pg_roles r WHERE r.rolname = current_user
"""

_TABLES = """
SELECT c.relname::text AS name, c.relispartition AS is_partition,
       EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id'
                  AND NOT a.attisdropped) AS has_tenant,
       c.relrowsecurity AS row_security, c.relforcerowsecurity AS is_forced,
       ARRAY(SELECT p.polname::text FROM pg_policy p WHERE p.polrelid = c.oid ORDER BY 1)
         AS policies
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'mnemic' AND c.relkind IN ('r', 'p') ORDER BY c.relname
"""

_FUNCTIONS = """
SELECT f.proname::text AS name, r.rolname::text AS owner, f.prosecdef AS is_definer,
       (SELECT substring(s FROM '^search_path=(.*)$') FROM unnest(f.proconfig) AS s
         WHERE s LIKE 'search_path=%') AS search_path
  FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace JOIN pg_roles r ON r.oid = f.proowner
 WHERE n.nspname = 'mnemic' ORDER BY f.proname
"""

_INVALID_INDEXES = """
SELECT k.relname::text AS name FROM pg_index i
  JOIN pg_class k ON k.oid = i.indexrelid JOIN pg_namespace n ON n.oid = k.relnamespace
 WHERE n.nspname = 'mnemic' AND NOT (i.indisvalid AND i.indisready)
   AND k.relam <> (SELECT oid FROM pg_am WHERE amname = 'hnsw') ORDER BY 1
"""
_INDEXES = """
SELECT c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'mnemic' AND c.relkind IN ('i', 'I')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """The server and the database; sizes in bytes, `version_number` as 180006 for 18.6."""

    version: str
    version_number: int
    database: str
    database_bytes: int
    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    is_replica: bool
    extensions: dict[str, str]
    is_pooled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFacts:
    """The role of the connection, and what it may do that a serving role must not."""

    name: str
    is_superuser: bool
    bypasses_row_security: bool
    creates_roles: bool
    creates_databases: bool
    member_of: tuple[str, ...]
    owns: tuple[str, ...]
    excess_rights: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A table of the schema, or a partition of one."""

    name: str
    is_partition: bool
    has_tenant: bool
    row_security: bool
    is_forced: bool
    policies: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionFacts:
    """A function of the schema."""

    name: str
    owner: str
    is_definer: bool
    search_path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything at once; `violations` are the broken rules of the catalogue.

    `missing_indexes` holds the statement that makes each of them; it is empty while the schema is
    not this release's.
    """

    server: ServerFacts
    role: RoleFacts
    revision: Revision
    tables: tuple[TableFacts, ...]
    functions: tuple[FunctionFacts, ...]
    invalid_indexes: tuple[str, ...]
    missing_indexes: dict[str, str]
    violations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shortcoming:
    """Why a database is not fit to serve, and what makes it so."""

    what: str
    remedy: str


async def inspect(connection: Any) -> Inspection:
    """All facts. Raises `SchemaMismatch` if the database is newer than this release, or foreign."""
    # The rules read the schema's tables, and a service that starts does not ask for them.
    from mnemic.store.catalogue import violations  # noqa: PLC0415 - see above

    revision = await revision_of(connection)
    return Inspection(
        server=await server_facts(connection),
        role=await role_facts(connection),
        revision=revision,
        tables=await table_facts(connection),
        functions=await function_facts(connection),
        invalid_indexes=await invalid_indexes(connection),
        missing_indexes=await missing_indexes(connection) if revision.is_head else {},
        violations=tuple(await violations(connection)),
    )


async def server_facts(connection: Any) -> ServerFacts:
    """The server and the database of the connection."""
    (row,) = await connection.fetch(_SERVER)
    extensions = await connection.fetch(_EXTENSIONS)
    return ServerFacts(**row, extensions=dict(extensions), is_pooled=await is_pooled(connection))


async def role_facts(connection: Any) -> RoleFacts:
    """The role of the connection."""
    (row,) = await connection.fetch(_ROLE)
    return RoleFacts(**{name: _frozen(value) for name, value in row.items()})


async def table_facts(connection: Any) -> tuple[TableFacts, ...]:
    """Every table of the schema, partitions included, by name."""
    rows = await connection.fetch(_TABLES)
    return tuple(
        TableFacts(**{name: _frozen(value) for name, value in row.items()}) for row in rows
    )


async def function_facts(connection: Any) -> tuple[FunctionFacts, ...]:
    """Every function of the schema, by name."""
    return tuple(FunctionFacts(**row) for row in await connection.fetch(_FUNCTIONS))


async def invalid_indexes(connection: Any) -> tuple[str, ...]:
    """Indexes whose concurrent build was not finished; they cost writes and answer nothing."""
    return tuple(row["name"] for row in await connection.fetch(_INVALID_INDEXES))


async def missing_indexes(connection: Any) -> dict[str, str]:
    """Indexes of this release's schema that are not there, each with what makes it.

    A restore that broke off leaves tables without them: nothing fails, and everything is slow.
    """
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - as the rules above
    from sqlalchemy.schema import CreateIndex  # noqa: PLC0415 - as the rules above

    from mnemic.schema import metadata  # noqa: PLC0415 - as the rules above

    there = {row["name"] for row in await connection.fetch(_INDEXES)}
    wanted = {str(index.name): index for table in metadata.sorted_tables for index in table.indexes}
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    return {
        name: " ".join(str(CreateIndex(wanted[name]).compile(dialect=dialect)).split())
        for name in sorted(wanted.keys() - there)
    }


def shortcomings(server: ServerFacts, role: RoleFacts, revision: Revision) -> list[Shortcoming]:
    """Why this connection must not serve; empty if it may."""
    found = []
    if server.version_number < SERVER_VERSION_MIN:
        found.append(Shortcoming(f"PostgreSQL is {server.version}", "use PostgreSQL 16 or later"))
    vector = server.extensions.get("vector", "")
    if _numbers(vector) < VECTOR_VERSION_MIN:
        found.append(
            Shortcoming(
                f"pgvector is {vector or 'missing'}",
                "install pgvector 0.8 or later, then run ALTER EXTENSION vector UPDATE"
                if vector
                else "run `mnemic db init`",
            )
        )
    found += [
        Shortcoming(f"{setting} is off: an acknowledged write may be lost", f"set {setting} = on")
        for setting, is_off in (
            ("fsync", not server.fsync),
            ("synchronous_commit", server.synchronous_commit == "off"),
        )
        if is_off
    ]
    if role.is_superuser or role.bypasses_row_security or role.owns:
        found.append(
            Shortcoming(
                f"the role {role.name} sees through row-level security or may switch it off",
                "let MEM_DATABASE_URL log in as mnemic_app",
            )
        )
    if not revision.is_head:
        found.append(
            Shortcoming(
                f"the schema is at {revision.current or 'nothing'}, this release's at "
                f"{revision.head}",
                "run `mnemic db upgrade`",
            )
        )
    return found


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
