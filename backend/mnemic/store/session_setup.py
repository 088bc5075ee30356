"""What a connection of the serving role is told before its first unit."""

from __future__ import annotations

from typing import Any

import orjson

from mnemic.errors import ConfigurationError
from mnemic.settings import DatabaseSettings
from mnemic.store.vectors_codec import decode_halfvec, encode_halfvec
from mnemic.store.working.jsonb import jsonb_of_body

__all__ = ["prepare_behind_pooler", "prepare_connection", "session_settings"]


def session_settings(settings: DatabaseSettings) -> dict[str, str]:
    """What holds for each session from its start, unless a pooler hands sessions on."""
    return {
        "application_name": "mnemic",
        "search_path": "mnemic, public",
        "plan_cache_mode": "force_custom_plan",
        "statement_timeout": str(settings.statement_timeout_ms),
        "lock_timeout": str(settings.lock_timeout_ms),
        "idle_in_transaction_session_timeout": "60000",
        # A server does not hear a cancelling that overtakes its statement. The connection is
        # closed then; without this, the server would work on and keep its locks.
        "client_connection_check_interval": "500",
        "jit": "off",
        "timezone": "UTC",
    }


async def prepare_connection(connection: Any) -> None:
    """JSON and vectors travel in the forms that the stores expect.

    Raises `ConfigurationError` if the extension `vector` is missing.
    """
    place = await connection.fetchval(
        "SELECT n.nspname FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n "
        "ON n.oid = t.typnamespace WHERE t.typname = 'halfvec'"
    )
    if place is None:
        raise ConfigurationError("The extension `vector` is missing; run `mnemic db init`.")
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=_json_text, decoder=orjson.loads
    )
    await connection.set_type_codec(
        "halfvec", schema=place, encoder=encode_halfvec, decoder=decode_halfvec, format="binary"
    )


async def prepare_behind_pooler(connection: Any) -> None:
    """As `prepare_connection`, where a pooler may hand each statement to another server."""
    # The driver switches `jit` off and on again while it asks for types: on one server, then,
    # which nobody else has meanwhile.
    async with connection.transaction():
        await prepare_connection(connection)


def _json_text(value: object) -> str:
    return jsonb_of_body(orjson.dumps(value))
