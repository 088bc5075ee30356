"""What an administrator sets up once, on a server of the tests' own: roles are one set a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import asyncpg
import pytest
from pydantic import SecretStr

from mnemic.embedded import EmbeddedServers, start
from mnemic.errors import ConfigurationError, StoreUnavailable
from mnemic.settings import EmbeddedSettings
from mnemic.store import roles
from mnemic.store.catalogue import violations
from mnemic.store.scram import scram_verifier
from mnemic.store.upgrade import current, upgrade

_numbers = count(1)

STATE = """
SELECT string_agg(line, E'\\n' ORDER BY line) FROM (
  SELECT format('%s %s', rolname, to_jsonb(r) - 'oid') AS line FROM pg_roles r
   WHERE rolname LIKE 'mnemic%'
  UNION ALL SELECT format('%s in %s %s', roleid::regrole, member::regrole, to_jsonb(m))
              FROM pg_auth_members m
  UNION ALL SELECT format('%s %s', nspname, nspacl) FROM pg_namespace
  UNION ALL SELECT format('%s %s', datname, datacl) FROM pg_database
  UNION ALL SELECT format('%s %s', extname, extversion) FROM pg_extension
  UNION ALL SELECT format('%s %s %s', setrole::regrole, setdatabase, setconfig)
              FROM pg_db_role_setting) AS lines (line)
"""


@pytest.fixture(scope="module")
def lonely_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServers]:
    """Servers where nobody has set up anything yet."""
    settings = EmbeddedSettings(data_dir=tmp_path_factory.mktemp("lonely"))
    started = start(settings, durable=False)
    yield started
    started.discard()


@pytest.fixture
async def root(lonely_servers: EmbeddedServers) -> AsyncIterator[asyncpg.Connection]:
    """The superuser, outside of the databases that the tests make."""
    connection = await asyncpg.connect(lonely_servers.postgres_url())
    yield connection
    await connection.close()


@pytest.fixture
async def bare(root: asyncpg.Connection) -> AsyncIterator[str]:
    """The name of a database that does not exist yet; afterwards it does not again."""
    name = f"bare_{next(_numbers)}"
    yield name
    await root.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def _asked(url: str, query: str, *values: Any) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query, *values)
    finally:
        await connection.close()


async def test_two_initialisers_at_once_on_a_new_server_both_succeed(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection, bare: str
) -> None:
    await root.execute("DROP ROLE IF EXISTS mnemic_owner, mnemic_app, mnemic_lookup")

    reports = await asyncio.gather(
        *(roles.init(lonely_servers.postgres_url(), database=bare) for _ in range(2))
    )

    assert sorted(report.database_created for report in reports) == [False, True]
    upgrade(lonely_servers.postgres_url("mnemic_owner", bare))
    app = await asyncpg.connect(lonely_servers.postgres_url("mnemic_app", bare))
    assert await violations(app) == []
    await app.close()


async def test_repeating_it_changes_nothing(lonely_servers: EmbeddedServers, bare: str) -> None:
    admin_url = lonely_servers.postgres_url()
    await roles.init(admin_url, database=bare)
    before = await _asked(lonely_servers.postgres_url(database=bare), STATE)

    report = await roles.init(admin_url, database=bare)

    assert report == roles.InitReport(database=bare, database_created=False)
    assert await _asked(lonely_servers.postgres_url(database=bare), STATE) == before


async def test_the_roles_have_exactly_their_rights(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection, bare: str
) -> None:
    await roles.init(lonely_servers.postgres_url(), database=bare)

    made = await root.fetch(
        "SELECT rolname::text, rolcanlogin, rolsuper OR rolbypassrls OR rolcreaterole"
        " OR rolcreatedb OR rolreplication FROM pg_roles WHERE rolname LIKE 'mnemic%' ORDER BY 1"
    )
    granted = await root.fetchrow(
        "SELECT inherit_option, set_option, admin_option FROM pg_auth_members"
        " WHERE roleid = 'mnemic_lookup'::regrole AND member = 'mnemic_owner'::regrole"
    )

    assert [tuple(row) for row in made] == [
        ("mnemic_app", True, False),
        ("mnemic_lookup", False, False),
        ("mnemic_owner", True, False),
    ]
    assert tuple(granted or ()) == (False, True, False)


async def test_the_serving_role_plans_anew_each_time_and_finds_the_types(
    lonely_servers: EmbeddedServers, bare: str
) -> None:
    await roles.init(lonely_servers.postgres_url(), database=bare)
    app_url = lonely_servers.postgres_url("mnemic_app", bare)

    assert await _asked(app_url, "SHOW plan_cache_mode") == "force_custom_plan"
    assert await _asked(app_url, "SHOW search_path") == "mnemic, public"
    assert await _asked(app_url, "SELECT '[1,2]'::halfvec::text") == "[1,2]"


async def test_only_a_database_that_had_to_be_made_is_closed_to_others(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection, bare: str
) -> None:
    shared = f"{bare}_shared"
    await root.execute(f"CREATE DATABASE {shared}")
    entered = "SELECT has_database_privilege('public', $1, 'CONNECT')"

    await roles.init(lonely_servers.postgres_url(), database=bare)
    await roles.init(lonely_servers.postgres_url(), database=shared)

    assert await root.fetchval(entered, bare) is False
    assert await root.fetchval(entered, shared) is True
    await root.execute(f"DROP DATABASE {shared}")


async def test_a_database_may_have_any_name(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection
) -> None:
    name = 'Odd "name"; it\'s 100%'

    await roles.init(lonely_servers.postgres_url(), database=name)

    assert await root.fetchval("SELECT true FROM pg_database WHERE datname = $1", name)
    upgrade(lonely_servers.postgres_url("mnemic_owner", name))
    await root.execute('DROP DATABASE "Odd ""name""; it\'s 100%" WITH (FORCE)')


@pytest.mark.parametrize("name", ["", "a\x00b", "n" * 64])
def test_a_name_that_no_database_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="name"):
        roles.init_sql(database=name)


@pytest.mark.parametrize(
    ("unfit", "repaired"),
    [
        ("ALTER ROLE mnemic_app SUPERUSER", "ALTER ROLE mnemic_app NOSUPERUSER"),
        ("ALTER ROLE mnemic_app BYPASSRLS", "ALTER ROLE mnemic_app NOBYPASSRLS"),
        ("ALTER ROLE mnemic_owner CREATEROLE", "ALTER ROLE mnemic_owner NOCREATEROLE"),
        ("ALTER ROLE mnemic_owner CREATEDB", "ALTER ROLE mnemic_owner NOCREATEDB"),
        ("ALTER ROLE mnemic_owner REPLICATION", "ALTER ROLE mnemic_owner NOREPLICATION"),
        ("ALTER ROLE mnemic_lookup LOGIN", "ALTER ROLE mnemic_lookup NOLOGIN"),
        ("GRANT mnemic_owner TO mnemic_app", "REVOKE mnemic_owner FROM mnemic_app"),
        ("GRANT pg_read_all_data TO mnemic_app", "REVOKE pg_read_all_data FROM mnemic_app"),
    ],
)
async def test_an_unfit_role_is_refused_with_the_remedy_and_left_as_it_is(
    lonely_servers: EmbeddedServers,
    root: asyncpg.Connection,
    bare: str,
    unfit: str,
    repaired: str,
) -> None:
    await roles.init(lonely_servers.postgres_url(), database=bare)
    await root.execute(unfit)
    before = await root.fetchval(STATE)

    with pytest.raises(ConfigurationError, match=r"mnemic_\w+") as caught:
        await roles.init(lonely_servers.postgres_url(), database=bare)

    assert repaired in str(caught.value)
    assert await root.fetchval(STATE) == before
    await root.execute(repaired)
    await roles.init(lonely_servers.postgres_url(), database=bare)


async def test_a_schema_of_somebody_else_is_refused(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection, bare: str
) -> None:
    await root.execute(f"CREATE DATABASE {bare}")
    inside = lonely_servers.postgres_url(database=bare)
    await _asked(inside, "CREATE SCHEMA mnemic")

    with pytest.raises(ConfigurationError, match=r"belongs to postgres.*ALTER SCHEMA"):
        await roles.init(lonely_servers.postgres_url(), database=bare)


async def test_a_database_that_is_not_utf8_is_refused(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection, bare: str
) -> None:
    await root.execute(f"CREATE DATABASE {bare} TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")

    with pytest.raises(ConfigurationError, match=r"SQL_ASCII.*UTF8"):
        await roles.init(lonely_servers.postgres_url(), database=bare)


async def test_an_old_pgvector_is_refused(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection, bare: str
) -> None:
    await roles.init(lonely_servers.postgres_url(), database=bare)
    inside = lonely_servers.postgres_url(database=bare)
    await _asked(inside, "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")

    with pytest.raises(ConfigurationError, match=r"0\.7\.4 is too old.*ALTER EXTENSION"):
        await roles.init(inside, database=bare)


async def test_an_administrator_who_is_no_superuser_needs_the_extension_first(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection, bare: str
) -> None:
    for role in ("mnemic_owner", "mnemic_app", "mnemic_lookup"):
        if await root.fetchval("SELECT to_regrole($1) IS NOT NULL", role):
            await root.execute(f"DROP OWNED BY {role} CASCADE")
            await root.execute(f"DROP ROLE {role}")
    await root.execute("CREATE ROLE keeper LOGIN CREATEROLE CREATEDB")
    keeper_url = lonely_servers.postgres_url("keeper")

    with pytest.raises(ConfigurationError, match=r"lacks a right.*--sql"):
        await roles.init(keeper_url, database=bare)
    await _asked(lonely_servers.postgres_url(database=bare), "CREATE EXTENSION vector")
    await roles.init(keeper_url, database=bare)
    await roles.init(keeper_url, database=bare)

    upgrade(lonely_servers.postgres_url("mnemic_owner", bare))
    app = await asyncpg.connect(lonely_servers.postgres_url("mnemic_app", bare))
    assert await violations(app) == []
    await app.close()
    await root.execute(f"DROP DATABASE {bare} WITH (FORCE)")
    for role in ("mnemic_owner", "mnemic_app", "mnemic_lookup", "keeper"):
        await root.execute(f"DROP ROLE {role}")


async def test_the_printed_statements_do_the_same(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection, bare: str
) -> None:
    await root.execute(f"CREATE DATABASE {bare} TEMPLATE template0 ENCODING 'UTF8'")
    inside = await asyncpg.connect(lonely_servers.postgres_url(database=bare))

    await inside.execute(roles.init_sql(database=bare))

    upgrade(lonely_servers.postgres_url("mnemic_owner", bare))
    assert await violations(inside) == []
    before = await inside.fetchval(STATE)
    await roles.init(lonely_servers.postgres_url(), database=bare)
    assert await inside.fetchval(STATE) == before
    await inside.close()


@pytest.mark.parametrize(
    "password",
    [
        "plain",
        'it\'s "quoted" \\ and 100% $$',
        "naïve ﬁ Å",
        "soft\u00adhyphen and\u00a0space",
        "\u05d0\u0031",
        "\u05d0b",
        "\u0627\u0628",
        "control \x07",
        "\u00ad",
        "p%40ss%25",
        "🔑" * 40,
    ],
)
async def test_the_verifier_is_the_one_that_the_server_makes(
    root: asyncpg.Connection, password: str
) -> None:
    await root.execute("CREATE ROLE somebody")
    quoted = await root.fetchval("SELECT quote_literal($1::text)", password)
    await root.execute(f"ALTER ROLE somebody PASSWORD {quoted}")

    theirs = await root.fetchval("SELECT rolpassword FROM pg_authid WHERE rolname = 'somebody'")
    salt = await root.fetchval(
        "SELECT decode(split_part(split_part($1::text, ':', 2), '$', 1), 'base64')", theirs
    )
    await root.execute("DROP ROLE somebody")

    assert scram_verifier(password, salt=salt) == theirs


async def test_passwords_are_set_and_never_reach_the_log(
    lonely_servers: EmbeddedServers, root: asyncpg.Connection, bare: str
) -> None:
    secret = "correct horse'; battery"
    await root.execute("ALTER ROLE postgres SET log_statement = 'all'")

    await roles.init(
        lonely_servers.postgres_url(),
        database=bare,
        app_password=secret,
        owner_password=f"{secret} 2",
    )

    await root.execute("ALTER ROLE postgres RESET log_statement")
    log = lonely_servers.log_files["postgres"].read_text(encoding="utf-8", errors="replace")
    kept = await root.fetchval("SELECT rolpassword FROM pg_authid WHERE rolname = 'mnemic_app'")
    assert "ALTER ROLE mnemic_app PASSWORD 'SCRAM-SHA-256$" in log
    assert "correct horse" not in log
    assert "correct horse" not in roles.init_sql(app_password=secret)
    assert kept.startswith("SCRAM-SHA-256$4096:")


@pytest.fixture
async def by_password(root: asyncpg.Connection) -> AsyncIterator[None]:
    """The server asks `mnemic_owner` for a password."""
    rules = await root.fetchval("SHOW hba_file")
    trusting = _rewritten(rules, lambda text: f"local all mnemic_owner scram-sha-256\n{text}")
    await _reloaded(root)
    yield
    _rewritten(rules, lambda _text: trusting)
    await _reloaded(root)


def _rewritten(path: str, change: Callable[[str], str]) -> str:
    """What the file held before."""
    before = Path(path).read_text(encoding="utf-8")
    Path(path).write_text(change(before), encoding="utf-8")
    return before


async def _reloaded(root: asyncpg.Connection) -> None:
    """New connections are held to the rules as they are now."""
    loaded = "SELECT pg_conf_load_time()"
    before = await root.fetchval(loaded)
    await root.execute("SELECT pg_reload_conf()")
    async with asyncio.timeout(30):
        while await root.fetchval(loaded) == before:
            await root.execute("SELECT pg_sleep(0.01)")


@pytest.mark.parametrize("password", ["p%40ss%25", "a/b:c?d#e[f]@g", "ünïcode \u00a0 ﬁ", "it's"])
async def test_a_password_of_any_characters_opens_the_door_and_another_does_not(
    lonely_servers: EmbeddedServers, bare: str, by_password: None, password: str
) -> None:
    await roles.init(lonely_servers.postgres_url(), database=bare, owner_password=password)
    url = lonely_servers.postgres_url("mnemic_owner", bare)
    keyed = url.replace("mnemic_owner@", f"mnemic_owner:{quote(password, safe='')}@")

    stands = upgrade(SecretStr(keyed))

    assert stands.is_head
    assert current(keyed).is_head
    for wrong in (url.replace("mnemic_owner@", "mnemic_owner:wrong@"), url):
        with pytest.raises(ConfigurationError, match="MEM_DATABASE_OWNER_URL"):
            upgrade(wrong)


@pytest.mark.parametrize("password", ["", "a\x00b"])
async def test_a_password_that_nobody_could_type_is_refused(
    lonely_servers: EmbeddedServers, password: str
) -> None:
    with pytest.raises(ConfigurationError, match="password of mnemic_app"):
        await roles.init(lonely_servers.postgres_url(), app_password=password)


async def test_a_server_that_is_away_is_unavailable_and_a_bad_url_is_a_mistake() -> None:
    with pytest.raises(StoreUnavailable, match="--admin-url"):
        await roles.init("postgresql://postgres@/postgres?host=/nowhere")
    with pytest.raises(ConfigurationError, match="postgresql://"):
        await roles.init("mysql://root@localhost/x")
    with pytest.raises(ConfigurationError, match="--admin-url"):
        await roles.init("postgresql://postgres@localhost:notaport/x")


async def test_an_administrator_who_is_unknown_is_told_so(
    lonely_servers: EmbeddedServers,
) -> None:
    url = lonely_servers.postgres_url("nobody_here")

    with pytest.raises(ConfigurationError, match="refuses the role in --admin-url"):
        await roles.init(url)

    assert urlsplit(url).scheme == "postgresql"
