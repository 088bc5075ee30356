from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from mnemic.embedded import start
from mnemic.settings import EmbeddedSettings

Psql = Callable[..., str]
Eventually = Callable[[Callable[[], Any]], None]
StateOf = Callable[[Path], dict[str, Any]]


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_a_first_start_makes_closed_folders_and_servers_with_the_promised_settings(
    new_folder: Path, psql: Psql, state_of: StateOf
) -> None:
    with start(EmbeddedSettings(data_dir=new_folder)) as servers:
        settings = {
            name: psql(servers, f"SHOW {name}")
            for name in ("fsync", "full_page_writes", "synchronous_commit", "data_checksums")
        }
        version = psql(servers, "SHOW server_version")
        tcp = psql(servers, "SHOW listen_addresses")
        pgvector = psql(servers, "CREATE EXTENSION vector; SELECT '[1,2]'::vector <-> '[1,3]'")
        with redis.Redis.from_url(servers.redis_url) as client:
            valkey = {
                name: client.config_get(name)[name]
                for name in ("port", "appendonly", "appendfsync", "maxmemory-policy")
            }
        sockets = modes_in(Path(state_of(new_folder)["sockets"]))
    folders = modes_in(new_folder / "servers")

    assert settings == dict.fromkeys(settings, "on")
    assert version.startswith("18.")
    assert tcp == ""
    assert pgvector == "1"
    assert valkey == {
        "port": "0",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
    }
    assert stat.S_IMODE(new_folder.stat().st_mode) == (0o711 if os.geteuid() == 0 else 0o700)
    assert folders == {"postgres": 0o700, "valkey": 0o700}
    assert sockets[".s.PGSQL.5432"] == sockets["valkey.sock"] == 0o700


def test_a_throwaway_cluster_flushes_nothing_and_is_gone_when_discarded(
    own_folder: Path, psql: Psql
) -> None:
    servers = start(EmbeddedSettings(data_dir=own_folder), durable=False)
    flushed = [psql(servers, f"SHOW {name}") for name in ("fsync", "synchronous_commit")]
    psql(servers, "CREATE TABLE IF NOT EXISTS kept (x int)")

    servers.discard()

    with start(EmbeddedSettings(data_dir=own_folder), durable=False) as again:
        assert psql(again, "SELECT to_regclass('kept') IS NULL") == "t"
    assert flushed == ["off", "off"]


def test_quotation_marks_are_no_part_of_a_word_in_text_search(folder: Path, psql: Psql) -> None:
    with start(EmbeddedSettings(data_dir=folder), durable=False) as servers:
        words = psql(servers, "SELECT to_tsvector('simple', '“Grüße” — ÜBER… Wörld')")

    assert words == "'grüße':1 'wörld':3 'über':2"


def test_data_are_kept_over_a_restart(folder: Path, psql: Psql) -> None:
    with start(EmbeddedSettings(data_dir=folder)) as servers:
        psql(servers, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 42 AS x")
        with redis.Redis.from_url(servers.redis_url) as client:
            client.set("kept", "43")

    with start(EmbeddedSettings(data_dir=folder)) as servers:
        row = psql(servers, "SELECT x FROM kept")
        with redis.Redis.from_url(servers.redis_url) as client:
            value = client.get("kept")

    assert (row, value) == ("42", b"43")


def test_nothing_runs_after_the_last_close(folder: Path, state_of: StateOf) -> None:
    servers = start(EmbeddedSettings(data_dir=folder), durable=False)
    state = state_of(folder)

    servers.close()
    servers.close()

    assert set(state["pids"]) == {"postgres", "valkey"}
    assert not any(Path(f"/proc/{pid}").exists() for pid in state["pids"].values())
    assert state_of(folder)["phase"] == "stopped"
    assert "shut down" in servers.log_files["postgres"].read_text()


def test_servers_inherit_no_descriptor_but_their_life_lock(folder: Path, state_of: StateOf) -> None:
    secret = os.open(__file__, os.O_RDONLY)
    os.set_inheritable(secret, True)  # noqa: FBT003 - the name of the call says it

    try:
        with start(EmbeddedSettings(data_dir=folder), durable=False):
            inherited = {
                name: sorted(
                    path.name
                    for entry in Path(f"/proc/{pid}/fd").iterdir()
                    if (path := entry.resolve()).suffix in {".lock", ".py", ".log"}
                )
                for name, pid in state_of(folder)["pids"].items()
            }
    finally:
        os.close(secret)

    assert inherited == {
        name: [f"{name}.lock", f"{name}.log", f"{name}.log"] for name in ("postgres", "valkey")
    }


def test_the_guard_is_no_child_and_in_no_session_of_the_program(
    folder: Path, state_of: StateOf
) -> None:
    with start(EmbeddedSettings(data_dir=folder), durable=False):
        pid = state_of(folder)["guard_pid"]
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        session = os.getsid(pid)
        standard = {Path(f"/proc/{pid}/fd/{fd}").resolve().name for fd in (1, 2)}

    assert parent != os.getpid()
    assert session != os.getsid(0)
    assert standard == {"guard.log"}


def test_the_log_holds_no_statement_and_no_value(folder: Path, psql: Psql) -> None:
    with start(EmbeddedSettings(data_dir=folder), durable=False) as servers:
        with pytest.raises(ConnectionError, match="canary"):
            psql(servers, "SELECT 'a canary'::int")
        log = servers.log_files["postgres"].read_text()

    assert "ready to accept connections" in log
    assert "canary" not in log


def test_a_program_that_embeds_python_starts_its_guard_with_a_real_one(
    folder: Path, psql: Psql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/sbin/uwsgi")

    with start(EmbeddedSettings(data_dir=folder), durable=False) as servers:
        answer = psql(servers, "SELECT 1")

    assert answer == "1"


def test_names_in_a_url_are_quoted(folder: Path, psql: Psql) -> None:
    with start(EmbeddedSettings(data_dir=folder), durable=False) as servers:
        psql(servers, 'CREATE DATABASE "a/b ?"')
        url = servers.postgres_url(database="a/b ?")
        name = psql(url, "SELECT current_database()")

    assert name == "a/b ?"


def test_a_program_without_a_home_starts_servers_in_a_folder_it_names(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from mnemic.embedded import start; "
        "from mnemic.settings import EmbeddedSettings; "
        "s = start(EmbeddedSettings(data_dir=Path(sys.argv[1])), durable=False); s.close()"
    )
    environment = {k: v for k, v in os.environ.items() if k not in {"HOME", "XDG_DATA_HOME"}}

    ran = subprocess.run(
        [sys.executable, "-c", code, str(folder)], env=environment, check=False, timeout=60
    )

    assert ran.returncode == 0
