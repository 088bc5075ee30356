"""What the doctor makes of what servers say; the checks on real servers stand with the command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mnemic.embedded import EmbeddedServers
from mnemic.errors import ConfigurationError, StoreUnavailable
from mnemic.service import doctor
from mnemic.service.doctor import Finding, Verdict
from mnemic.store.inspection import RoleFacts, ServerFacts
from mnemic.store.pooling import Pooling
from mnemic.store.valkey import SERVED, ValkeyFacts, product_of, valkey_facts

SERVER = ServerFacts(
    version="18.6",
    version_number=180_006,
    database="mnemic",
    database_bytes=8_388_608,
    fsync=True,
    full_page_writes=True,
    synchronous_commit="on",
    is_replica=False,
    extensions={"vector": "0.8.6", "pg_trgm": "1.6", "btree_gin": "1.3"},
)
ROLE = RoleFacts(
    name="mnemic_app",
    is_superuser=False,
    bypasses_row_security=False,
    creates_roles=False,
    creates_databases=False,
    member_of=(),
    owns=(),
    excess_rights=(),
)
VALKEY = ValkeyFacts(
    product="Valkey",
    version=(9, 1, 2),
    eviction_policy="noeviction",
    memory_used=1_048_576,
    memory_max=0,
    appends_to_file=True,
    is_replica=False,
    answer_ms=0.2,
)


@pytest.mark.parametrize(
    ("finding", "verdict", "word"),
    [
        (doctor._server(SERVER), "ok", "18.6, 8 MiB in mnemic"),
        (doctor._server(replace(SERVER, version_number=150_004)), "fail", "PostgreSQL 16"),
        (doctor._server(replace(SERVER, is_replica=True)), "fail", "primary"),
        (doctor._pooler(Pooling.NONE, is_expected=False), "ok", "the server itself"),
        (doctor._pooler(Pooling.NONE, is_expected=True), "warn", "unset MEM_DATABASE__PGBOUNCER"),
        (doctor._pooler(Pooling.TRANSACTION, is_expected=True), "ok", "transaction mode"),
        (doctor._pooler(Pooling.TRANSACTION, is_expected=False), "fail", "PGBOUNCER=true"),
        (doctor._pooler(Pooling.SESSION, is_expected=False), "fail", "PGBOUNCER=true"),
        (doctor._pooler(Pooling.SESSION, is_expected=True), "warn", "pool_mode = transaction"),
        (doctor._pooler(Pooling.STATEMENT, is_expected=True), "fail", "pool_mode = transaction"),
        (doctor._pooler(Pooling.UNKNOWN, is_expected=True), "warn", "default_pool_size"),
        (doctor._extensions(SERVER), "ok", "vector 0.8.6"),
        (doctor._extensions(replace(SERVER, extensions={})), "fail", "db init"),
        (
            doctor._extensions(
                replace(SERVER, extensions={**SERVER.extensions, "vector": "0.7.4"})
            ),
            "fail",
            "pgvector 0.8",
        ),
        (doctor._durability(SERVER, is_required=True), "ok", "fsync on"),
        (
            doctor._durability(replace(SERVER, synchronous_commit="off"), is_required=True),
            "fail",
            "synchronous_commit",
        ),
        (
            doctor._durability(replace(SERVER, full_page_writes=False), is_required=True),
            "warn",
            "full_page_writes",
        ),
        (doctor._role(ROLE), "ok", "mnemic_app"),
        (doctor._role(replace(ROLE, bypasses_row_security=True)), "fail", "BYPASSRLS"),
        (doctor._role(replace(ROLE, excess_rights=("TRUNCATE on facts",))), "fail", "TRUNCATE"),
        (doctor._role(replace(ROLE, creates_databases=True)), "warn", "may create"),
        (doctor._valkey_server(VALKEY), "ok", "Valkey 9.1.2"),
        (doctor._valkey_server(replace(VALKEY, version=(7, 2, 4))), "ok", "Valkey 7.2.4"),
        (doctor._valkey_server(replace(VALKEY, version=(7, 1, 9))), "fail", "Valkey 7.2"),
        (
            doctor._valkey_server(replace(VALKEY, product="Redis", version=(7, 0, 1))),
            "ok",
            "Redis 7.0.1",
        ),
        (
            doctor._valkey_server(replace(VALKEY, product="Redis", version=(6, 2, 14))),
            "fail",
            "Redis 7.0",
        ),
        (doctor._valkey_server(replace(VALKEY, is_replica=True)), "fail", "primary"),
        (doctor._valkey_server(replace(VALKEY, appends_to_file=False)), "warn", "appendonly"),
        (doctor._eviction(replace(VALKEY, eviction_policy="volatile-lru")), "ok", "volatile-lru"),
        (doctor._eviction(replace(VALKEY, eviction_policy="allkeys-lfu")), "fail", "noeviction"),
    ],
)
def test_each_fact_has_its_verdict_and_its_remedy(
    finding: Finding, verdict: str, word: str
) -> None:
    told = f"{finding.detail} {finding.remedy}"

    assert finding.verdict == verdict
    assert word in told
    assert (finding.remedy is None) == (verdict == "ok")


def test_the_page_names_the_servers_that_serve(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs/working-memory.md").read_text(encoding="utf-8")

    assert f"\n{SERVED}. " in page


@pytest.mark.parametrize(
    ("told", "product"),
    [
        ({"redis_version": "7.0.15"}, ("Redis", (7, 0, 15))),
        (
            {"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "8.1.0"},
            ("Valkey", (8, 1, 0)),
        ),
        ({}, ("Redis", (0,))),
    ],
)
def test_a_valkey_is_not_taken_for_the_redis_that_it_equals(
    told: dict[str, str], product: tuple[str, tuple[int, ...]]
) -> None:
    assert product_of(told) == product


def test_a_folder_that_is_yet_to_be_made_is_judged_by_the_disk_it_will_be_on(
    tmp_path: Path,
) -> None:
    finding = doctor._disk(tmp_path / "not" / "yet")

    assert finding.verdict in set(Verdict)
    assert "GiB free" in finding.detail


async def test_the_embedded_valkey_says_what_it_is(servers: EmbeddedServers) -> None:
    facts = await valkey_facts(servers.redis_url)

    assert facts.product == "Valkey"
    assert facts.version >= (9, 0)
    assert facts.eviction_policy == "noeviction"
    assert facts.appends_to_file
    assert not facts.is_replica
    assert facts.memory_used > 0


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("redis://127.0.0.1:1/0", StoreUnavailable, "cannot be reached"),
        ("unix:///no/such/socket", StoreUnavailable, "cannot be reached"),
        ("http://127.0.0.1/0", ConfigurationError, "not a usable URL"),
    ],
)
async def test_a_valkey_that_cannot_be_asked_is_told_by_its_setting(
    url: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=f"MEM_REDIS_URL .*{words}"):
        await valkey_facts(url)


async def test_a_valkey_that_wants_another_password_is_a_configuration_error(
    servers: EmbeddedServers,
) -> None:
    with pytest.raises(ConfigurationError, match="refuses"):
        await valkey_facts(f"unix://nobody:wrong@{servers.redis_url.removeprefix('unix://')}")
