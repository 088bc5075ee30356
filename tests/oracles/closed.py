"""*Fail closed*: what is not known to be allowed shows no row and changes none, and says why.

At the verbs: a value that cannot be parsed is refused by its name, never left out. At the wall: a
connection whose tenant is missing, garbled or a stranger sees and takes nothing. At the settings:
what cannot be read is refused, and the default never stands in for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from mnemic import ConfigurationError, InvalidInput, MemoryManager, Scope
from mnemic.settings import variable_of
from mnemic.settings_reading import read_settings
from oracles.answers import answer_of, is_precise
from oracles.reading import ways_that_show
from oracles.stored import assert_changes_nothing, rows_of

__all__ = [
    "TENANTS_OF_NOBODY",
    "assert_setting_closed",
    "assert_unknown_shows_nothing",
    "assert_wall_closed",
    "fails_closed",
]

TENANTS_OF_NOBODY: dict[str, str | None] = {
    "never set": None,
    "empty": "",
    "blank": "  ",
    "no id": "anybody",
    "a pattern": "%",
    "half an id": "00000000-0000-4000-8000",
    "nobody": str(UUID(int=0)),
    "a stranger": str(uuid4()),
}
"""What a connection's setting may be without being somebody's."""


async def fails_closed(
    seen: asyncpg.Connection,
    scope: Scope,
    call: Callable[[], Awaitable[Any]],
    *,
    field: str,
    control: Callable[[], Awaitable[Any]],
) -> InvalidInput:
    """The call is refused by the name of the field and changes no row; its twin shows some."""
    answer = await assert_changes_nothing(seen, scope, lambda: _refusal_of(call))
    assert isinstance(answer, InvalidInput), f"{field} was taken: {answer!r}"
    assert is_precise(answer, {field}), f"{field}: {answer}"
    controlled = await answer_of(control())
    assert controlled.error is None, f"the harmless twin failed: {controlled.error}"
    assert controlled.reply, "the harmless twin shows nothing, so that nothing is proven"
    return answer


async def _refusal_of(call: Callable[[], Awaitable[Any]]) -> Any:
    """The refusal, or the reply; fails for an inner fault."""
    answer = await answer_of(call())
    return answer.reply if answer.error is None else answer.error


async def assert_unknown_shows_nothing(
    memory: MemoryManager, seen: asyncpg.Connection, unknown: Scope, home: Scope, word: str
) -> None:
    """A scope that nobody made answers whoever asks, with nothing, and is not made by asking.

    `word` stands in `home`, where it must be shown.
    """
    before = await rows_of(seen, unknown)
    ways = await ways_that_show(memory, unknown, word)
    assert ways == set(), f"shown to nobody: {sorted(ways)}"
    assert await rows_of(seen, unknown) == before, "made by being asked"
    assert await ways_that_show(memory, home, word), (
        f"{word} stands nowhere, so that it proves nothing"
    )


async def assert_wall_closed(
    app: asyncpg.Connection,
    rows: Mapping[str, list[str]],
    tenants: Mapping[str, str | None] = TENANTS_OF_NOBODY,
) -> None:
    """With none of the settings does the serving role see, take, change or delete a row.

    `rows` are those of one tenant, by table (`stored.rows_of`); with its setting each is seen.
    """
    assert rows
    opened = {
        f"{table}: {what} with the tenant {name}"
        for name, tenant in tenants.items()
        for table, texts in rows.items()
        for what in await _let_through(app, table, texts[0], tenant)
    }
    assert opened == set(), f"the wall stands open: {sorted(opened)}"


async def _let_through(
    app: asyncpg.Connection, table: str, row: str, tenant: str | None
) -> list[str]:
    """What the wall lets a connection with this setting do to a table; all of it is undone."""
    whole = f"jsonb_populate_record(NULL::mnemic.{table}, CAST('{_quoted(row)}' AS jsonb))"
    statements = {
        "seen": f"SELECT FROM mnemic.{table}",
        "deleted": f"DELETE FROM mnemic.{table}",
        "changed": f"UPDATE mnemic.{table} SET tenant_id = tenant_id",
        "taken": f"INSERT INTO mnemic.{table} SELECT * FROM {whole}",
    }
    return [
        what for what, statement in statements.items() if await _touches(app, statement, tenant)
    ]


async def _touches(app: asyncpg.Connection, statement: str, tenant: str | None) -> bool:
    """Whether the statement sees or changes a row; it is undone."""
    trial = app.transaction()
    await trial.start()
    try:
        if tenant is not None:
            await app.execute("SELECT set_config('mnemic.tenant_id', $1, true)", tenant)
        status = await app.execute(statement)
    except asyncpg.UniqueViolationError:
        return True  # whoever meets another's key has been let through
    except asyncpg.PostgresError:
        return False
    finally:
        await trial.rollback()
    return not status.endswith(" 0")


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def assert_setting_closed(name: str, text: str, set_variable: Callable[[str, str], None]) -> bool:
    """The setting is what the text says, or is refused by its name with the remedy; which of them.

    `set_variable` sets an environment variable for the time of the test.
    """
    set_variable(variable_of(name), text)
    try:
        held = read_settings(warns=False).effective()[name]
    except ConfigurationError as refusal:
        told = str(refusal)
        assert name in told, told
        assert "correct it" in told or "must" in told, told
        told.encode()
        return False
    assert _says(text, held), f"{name} is {held!r} where {text!r} was set"
    return True


def _says(text: str, held: Any) -> bool:
    """Whether the value is what the text says, in the form in which settings are shown."""
    if isinstance(held, bool):
        return text.strip().casefold() in (
            {"true", "1", "yes", "on", "t", "y"} if held else {"false", "0", "no", "off", "f", "n"}
        )
    if isinstance(held, int | float):
        return float(text) == held
    return str(held) in {text, "***"}
