"""Nothing is shown to whoever is not known, nor for what cannot be parsed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import pytest

from mnemic import ConfigurationError, InvalidInput, MemoryManager, MemorySettings, Scope
from mnemic.embedded import EmbeddedServers
from mnemic.settings import value_names, variable_of
from mnemic.settings_reading import origins, read_settings
from mnemic.store import roles
from mnemic.testing import a_conversation, a_fact, a_scope
from oracles.answers import MESSAGE_CHARS_MAX
from oracles.applied import FILTERS, LIMIT, Filter
from oracles.closed import (
    TENANTS_OF_NOBODY,
    assert_setting_closed,
    assert_unknown_shows_nothing,
    assert_wall_closed,
    fails_closed,
)
from oracles.closure import plant
from oracles.holdings import furnish
from oracles.stage import Stage
from oracles.stored import rows_of

GARBLED = ("", " ", "soon", "nan", "-1", "1e999", "9" * 5_000, "[]", "{", "null", "\udcff", "P-1D")


@pytest.fixture(scope="module")
async def furnished(stage: Stage) -> Scope:
    """A scope that holds something for every filter to let through."""
    scope = Scope.user("closed")
    await furnish(stage.memory, scope)
    return scope


@pytest.mark.parametrize("narrowing", FILTERS, ids=str)
async def test_what_a_filter_cannot_parse_shows_nothing_and_is_named(
    stage: Stage, furnished: Scope, narrowing: Filter
) -> None:
    async def asked(value: Any, limit: Any = LIMIT) -> Any:
        return await narrowing.ask(stage.memory, furnished, value, limit)

    for value in narrowing.unparsable:
        await fails_closed(
            stage.seen,
            furnished,
            lambda value=value: asked(value),
            field=narrowing.field,
            control=lambda: asked(narrowing.good),
        )
    for limit in narrowing.no_limits:
        await fails_closed(
            stage.seen,
            furnished,
            lambda limit=limit: asked(narrowing.good, limit),
            field="limit",
            control=lambda: asked(narrowing.good),
        )


async def test_a_filter_that_is_left_out_where_it_cannot_be_parsed_is_seen(
    stage: Stage, furnished: Scope
) -> None:
    async def everything() -> Any:
        return await stage.memory.at(furnished).episodic.get_recent()

    async def nothing() -> list[Any]:
        return []

    async def refuses(field: str = "since") -> None:
        raise InvalidInput("must be a datetime with a zone", field=field)

    async def writes() -> None:
        await stage.memory.store_fact(a_fact(object="meanwhile"), scope=furnished)
        await refuses()

    async def judged(call: Callable[[], Any], control: Callable[[], Any] = everything) -> None:
        await fails_closed(stage.seen, furnished, call, field="since", control=control)

    await judged(refuses)
    for lenient in (everything, nothing):
        with pytest.raises(AssertionError, match="since was taken"):
            await judged(lenient)
    with pytest.raises(AssertionError, match="limit: "):
        await judged(lambda: refuses("limit"))
    with pytest.raises(AssertionError, match="facts"):
        await judged(writes)
    with pytest.raises(AssertionError, match="nothing is proven"):
        await judged(refuses, nothing)
    with pytest.raises(AssertionError, match="harmless twin failed"):
        await judged(refuses, refuses)


UNKNOWN: dict[str, Callable[[Scope], Scope]] = {
    "a stranger": lambda home: Scope.user(f"{home.tenant.external_id} stranger"),
    "an organisation of that name": lambda home: Scope.organisation(home.tenant.external_id),
    "another project": lambda home: home.parent.project("nobody's"),  # type: ignore[union-attr]
    "what lies above": lambda home: home.parent or home,
    "an agent of another project": lambda home: home.parent.project("q").agent("a"),  # type: ignore[union-attr]
}


@pytest.mark.parametrize("unknown", UNKNOWN)
async def test_a_scope_that_nobody_made_shows_nothing(
    memory: MemoryManager, seen: asyncpg.Connection, unknown: str
) -> None:
    home = a_scope().project("home")
    [word] = await plant(memory, [home])

    await assert_unknown_shows_nothing(memory, seen, UNKNOWN[unknown](home), home, word)


async def test_a_scope_that_shows_what_is_above_it_is_seen(
    memory: MemoryManager, seen: asyncpg.Connection
) -> None:
    home = a_scope().project("home")
    [word] = await plant(memory, [home])

    with pytest.raises(AssertionError, match="shown to nobody"):
        await assert_unknown_shows_nothing(memory, seen, home.agent("a"), home, word)
    with pytest.raises(AssertionError, match="proves nothing"):
        await assert_unknown_shows_nothing(memory, seen, a_scope(), home, "never said")


@pytest.fixture
async def stocked(memory: MemoryManager) -> Scope:
    """A tenant with rows in most tables."""
    scope = a_scope()
    await plant(memory, [scope])
    session = scope.session("s")
    await memory.sessions.append(a_conversation(["The lease is red."]), scope=session)
    await memory.at(scope).working.set("k", 1, durable=True)
    await memory.at(scope).working.create_checkpoint()
    await memory.grants.allow(session, to=scope)
    await memory.store_fact(a_fact(), scope=scope, idempotency_key="k")
    gone = await memory.store_fact(a_fact(object="gone"), scope=scope)
    await memory.forget([gone.id], scope=scope)
    await memory.maintenance.count_terms()
    return scope


@pytest.fixture
async def app(servers: EmbeddedServers, stage: Stage) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the serving role to the stage's database, past any pooler."""
    direct = getattr(servers, "direct", servers)
    name = await stage.seen.fetchval("SELECT current_database()")
    connection = await asyncpg.connect(direct.postgres_url(roles.APP_ROLE, name))
    yield connection
    await connection.close()


async def test_a_connection_that_is_nobodys_sees_and_takes_nothing(
    app: asyncpg.Connection, seen: asyncpg.Connection, stocked: Scope
) -> None:
    rows = await rows_of(seen, stocked)

    await assert_wall_closed(app, rows)

    assert len(rows) > 14
    own = {"its own": str(stocked.tenant.id)}
    with pytest.raises(AssertionError, match=r"facts: seen with the tenant its own"):
        await assert_wall_closed(app, rows, own)


@pytest.mark.parametrize(
    ("table", "policy", "opened"),
    [
        ("facts", "FOR SELECT USING (true)", "seen"),
        ("working_memory", "USING (tenant_id::text LIKE '%')", "deleted"),
        ("tombstones", "FOR INSERT WITH CHECK (true)", "taken"),
        (
            "turns",
            "USING (nullif(current_setting('mnemic.tenant_id', true), '') IS NULL)",
            "changed",
        ),
    ],
)
async def test_a_wall_that_stands_open_to_nobody_is_seen(
    app: asyncpg.Connection,
    seen: asyncpg.Connection,
    stocked: Scope,
    table: str,
    policy: str,
    opened: str,
) -> None:
    rows = {table: (await rows_of(seen, stocked))[table]}
    await seen.execute(f"CREATE POLICY planted ON mnemic.{table} {policy}")
    try:
        with pytest.raises(AssertionError, match=f"{table}: {opened} with the tenant never set"):
            await assert_wall_closed(app, rows)
    finally:
        await seen.execute(f"DROP POLICY planted ON mnemic.{table}")
    await assert_wall_closed(app, rows)


@pytest.mark.parametrize("name", value_names())
def test_a_setting_that_cannot_be_read_is_refused_and_never_the_default(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    taken = [text for text in GARBLED if assert_setting_closed(name, text, monkeypatch.setenv)]

    assert not {"", " "} & set(taken)


def test_a_setting_that_is_not_what_was_set_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(variable: str, text: str) -> None:
        if text.isdigit():
            monkeypatch.setenv(variable, text)

    assert assert_setting_closed("recall.limit_max", "50", lenient)
    with pytest.raises((AssertionError, ValueError)):
        assert_setting_closed("recall.limit_max", "fifty", lenient)


DURATIONS = [
    f"{section}.{name}"
    for section, held in MemorySettings.model_fields.items()
    for name, field in getattr(held.annotation, "model_fields", {}).items()
    if field.annotation is timedelta
]


@pytest.mark.parametrize("name", DURATIONS)
def test_no_duration_reaches_beyond_what_a_clock_can_tell(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(variable_of(name), "P999999999D")

    with pytest.raises(ConfigurationError, match=name):
        read_settings(warns=False)


def test_there_are_settings_of_nobody_to_be_tried() -> None:
    assert len(DURATIONS) > 3
    assert None in TENANTS_OF_NOBODY.values()
    assert "" in TENANTS_OF_NOBODY.values()


SECTIONS = [name for name in MemorySettings.model_fields if not name.endswith("_url")]
DEEP = ("[" * 100_000, '{"a":' * 50_000, '{"limit_max":NaN}', '{"x":"\\ud800"}', "5", "true")


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_that_cannot_be_read_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, section: str
) -> None:
    for text in (*GARBLED, *DEEP):
        monkeypatch.setenv(variable_of(section), text)
        with pytest.raises(ConfigurationError, match=re.compile(section, re.IGNORECASE)) as refused:
            read_settings(warns=False)
        assert len(str(refused.value)) < MESSAGE_CHARS_MAX
        assert origins()["recall.limit_max"]

    monkeypatch.setenv(variable_of(section), "{}")
    assert read_settings(warns=False)


def test_a_file_of_settings_that_cannot_be_read_is_refused_whatever_it_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    named = tmp_path / "settings.toml"
    monkeypatch.setenv("MEM_SETTINGS_FILE", str(named))
    random = Random(pytestconfig.getoption("--seed"))
    wrong = [b"\xff\xfe", b"x=" + b"[" * 50_000, b"[recall]\nlimit_max = " + b"9" * 5_000, b"\x00"]
    wrong += [
        b"[[recall]]",
        b"[recall]\nlimit_max = nan",
        b'[recall]\n"\\ud800" = 1',
        b"recall = 5",
    ]
    wrong += [b"x = " + random.randbytes(20) for _ in range(20)]

    for content in wrong:
        named.write_bytes(content)
        with pytest.raises(ConfigurationError) as refused:
            read_settings(warns=False)
        assert 0 < len(str(refused.value)) < MESSAGE_CHARS_MAX
        assert origins()["recall.limit_max"] in {f"file {named}", "default"}

    named.write_text("[recall]\nlimit_max = 50\n")
    assert read_settings(warns=False).recall.limit_max == 50
