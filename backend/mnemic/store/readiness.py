"""Whether a database is fit to serve: asked once, before the first memory."""

from __future__ import annotations

from mnemic.errors import ConfigurationError, SchemaMismatch
from mnemic.store.statement import Statement
from mnemic.store.unit import Database

__all__ = ["refuse_unfit"]

STATE = Statement("""
    SELECT r.rolsuper, r.rolbypassrls, r.rolname,
           current_setting('server_version_num')::int AS server_version,
           current_setting('fsync') = 'off' AS no_fsync,
           EXISTS (SELECT FROM pg_catalog.pg_class c
                     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                    WHERE n.nspname = 'mnemic' AND pg_has_role(c.relowner, 'USAGE')) AS owns,
           to_regclass('mnemic.turns') IS NOT NULL AS has_tables
      FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
""")

REMEDY = "set MEM_DATABASE_URL to the role `mnemic_app` that `mnemic db init` makes"


async def refuse_unfit(database: Database) -> None:
    """The role is held by row-level security and the schema is there.

    Raises `ConfigurationError` if the role is a superuser, bypasses row-level security or owns the
    tables, since policies would not hold for it; `SchemaMismatch` if there is no schema.
    """
    async with database.open_unit(None, read_only=True) as unit:
        state = await unit.fetch_one(STATE)
    if state is None:
        raise ConfigurationError("The database does not know its own role.")
    name = state["rolname"]
    if state["rolsuper"]:
        raise ConfigurationError(
            f"The role {name} is a superuser, which sees through policies; {REMEDY}."
        )
    if state["rolbypassrls"]:
        raise ConfigurationError(f"The role {name} has BYPASSRLS; {REMEDY}.")
    if not state["has_tables"]:
        raise SchemaMismatch("The database has no tables of mnemic; run `mnemic db upgrade`.")
    if state["owns"]:
        raise ConfigurationError(f"The role {name} owns the tables; {REMEDY}.")
