from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from mnemic.embedded import start
from mnemic.embedded.account import server_account
from mnemic.embedded.binaries import find_binaries
from mnemic.embedded.guard import LOG_BYTES_MAX
from mnemic.embedded.layout import home_of
from mnemic.errors import ServerUnavailable
from mnemic.settings import EmbeddedSettings

Psql = Callable[..., str]
Eventually = Callable[[Callable[[], Any]], None]
Gone = Callable[[Path], bool]
StateOf = Callable[[Path], dict[str, Any]]

# Never waits for a latch, so that its backend does not notice that its postmaster is gone.
BUSY = "DO $$ BEGIN LOOP NULL; END LOOP; END $$"


def answers(psql: Psql, url: str) -> bool:
    try:
        return psql(url, "SELECT 1") == "1"
    except ConnectionError:
        return False


def run_busy(url: str) -> subprocess.Popen[bytes]:
    psql = find_binaries().postgres_bin / "psql"
    return subprocess.Popen(
        [psql, "-Xq", url, "-c", BUSY], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )


def test_a_killed_program_leaves_no_server_and_no_loss(
    folder: Path, psql: Psql, program: Callable[..., Any], eventually: Eventually, gone: Gone
) -> None:
    user = program(folder, durable=True)
    psql(
        user.ready()["postgres_url"],
        "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 42 AS x",
    )

    user.kill()

    eventually(lambda: gone(folder))
    with start(EmbeddedSettings(data_dir=folder)) as servers:
        assert psql(servers, "SELECT x FROM kept") == "42"


def test_a_program_that_ends_without_closing_leaves_no_server(
    folder: Path, program: Callable[..., Any], eventually: Eventually, gone: Gone
) -> None:
    user = program(folder)
    user.ready()

    code = user.end()

    eventually(lambda: gone(folder))
    assert code == 0


def test_a_killed_postgres_is_started_again_though_a_session_is_busy(
    folder: Path, psql: Psql, state_of: StateOf, eventually: Eventually
) -> None:
    with start(EmbeddedSettings(data_dir=folder)) as servers:
        psql(servers, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 42 AS x")
        busy = run_busy(servers.postgres_url())
        eventually(
            lambda: (
                psql(servers, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO%'") == "1"
            )
        )

        os.kill(state_of(folder)["pids"]["postgres"], signal.SIGKILL)

        eventually(lambda: servers.restarts["postgres"] == 1)
        eventually(lambda: answers(psql, servers.postgres_url()))
        assert psql(servers, "SELECT x FROM kept") == "42"
        assert servers.restarts == {"postgres": 1, "valkey": 0}
        assert busy.wait(timeout=10) != 0


def test_a_killed_valkey_is_started_again_with_what_it_held(
    folder: Path, state_of: StateOf, eventually: Eventually
) -> None:
    with (
        start(EmbeddedSettings(data_dir=folder), durable=False) as servers,
        redis.Redis.from_url(servers.redis_url) as client,
    ):
        client.set("kept", "43")

        os.kill(state_of(folder)["pids"]["valkey"], signal.SIGKILL)

        eventually(lambda: servers.restarts["valkey"] == 1)
        with start(EmbeddedSettings(data_dir=folder), durable=False):  # waits until both answer
            assert client.get("kept") == b"43"


def test_a_server_that_keeps_ending_is_given_up(
    folder: Path, state_of: StateOf, eventually: Eventually, gone: Gone
) -> None:
    with start(EmbeddedSettings(data_dir=folder), durable=False):

        def killed_until_failed() -> bool:
            state = state_of(folder)
            if "valkey" in state["pids"] and state["phase"] == "running":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(state["pids"]["valkey"], signal.SIGKILL)
            return bool(state["phase"] == "failed")

        eventually(killed_until_failed)
        state = state_of(folder)
        eventually(lambda: gone(folder))

    assert state["failure"]["server"] == "valkey"
    assert "ended 7 times within 60 s" in state["failure"]["text"]


def test_a_killed_guard_leaves_no_server_and_the_next_start_recovers(
    folder: Path, psql: Psql, state_of: StateOf, eventually: Eventually, gone: Gone
) -> None:
    with start(EmbeddedSettings(data_dir=folder)) as servers:
        psql(servers, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 42 AS x")

        os.kill(state_of(folder)["guard_pid"], signal.SIGKILL)

        eventually(lambda: gone(folder))
        assert "database system is shut down" in servers.log_files["postgres"].read_text()[-200:]
        with start(EmbeddedSettings(data_dir=folder)) as again:
            assert psql(again, "SELECT x FROM kept") == "42"
            assert servers.postgres_url() == again.postgres_url()


def test_sessions_that_outlive_both_guard_and_postgres_are_ended_by_the_next_start(
    folder: Path, psql: Psql, state_of: StateOf, eventually: Eventually
) -> None:
    with start(EmbeddedSettings(data_dir=folder), durable=False) as servers:
        busy = run_busy(servers.postgres_url())
        eventually(
            lambda: (
                psql(servers, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO%'") == "1"
            )
        )
        state = state_of(folder)

        for pid in (state["guard_pid"], *state["pids"].values()):
            os.kill(pid, signal.SIGKILL)

        with start(EmbeddedSettings(data_dir=folder), durable=False) as again:
            assert psql(again, "SELECT 1") == "1"
        busy.wait(timeout=10)


def test_a_start_that_was_killed_while_making_the_cluster_is_made_good(
    new_folder: Path,
    psql: Psql,
    program: Callable[..., Any],
    state_of: StateOf,
    eventually: Eventually,
) -> None:
    program(new_folder)
    scratch = new_folder / "servers" / "postgres.new" / "base"
    eventually(scratch.exists)

    os.kill(state_of(new_folder)["guard_pid"], signal.SIGKILL)

    with start(EmbeddedSettings(data_dir=new_folder), durable=False) as servers:
        assert psql(servers, "SELECT count(*) FROM pg_database") == "3"


def test_pid_files_that_name_a_stranger_do_not_stop_the_start(
    own_folder: Path, psql: Psql, state_of: StateOf, eventually: Eventually
) -> None:
    servers = start(EmbeddedSettings(data_dir=own_folder), durable=False)
    sockets = Path(state_of(own_folder)["sockets"])
    cluster = home_of(own_folder) / "postgres"
    stale = (cluster / "postmaster.pid").read_text().splitlines()
    servers.close()
    stranger = "\n".join([str(os.getppid()), *stale[1:]]) + "\n"
    (cluster / "postmaster.pid").write_text(stranger)
    sockets.mkdir(mode=0o700)
    shutil.chown(sockets, cluster.stat().st_uid, cluster.stat().st_gid)
    for name in (".s.PGSQL.5432.lock", ".s.PGSQL.5432", "valkey.sock"):
        (sockets / name).write_text(stranger)

    with start(EmbeddedSettings(data_dir=own_folder), durable=False) as again:
        assert psql(again, "SELECT 1") == "1"


def test_a_torn_end_of_valkeys_log_does_not_stop_the_start(own_folder: Path) -> None:
    with (
        start(EmbeddedSettings(data_dir=own_folder)) as servers,
        redis.Redis.from_url(servers.redis_url) as client,
    ):
        client.set("kept", "43")
        client.set("torn", "44")
    (log,) = (home_of(own_folder) / "valkey" / "appendonlydir").glob("*.incr.aof")
    os.truncate(log, log.stat().st_size - 3)

    with (
        start(EmbeddedSettings(data_dir=own_folder)) as servers,
        redis.Redis.from_url(servers.redis_url) as client,
    ):
        assert (client.get("kept"), client.get("torn")) == (b"43", None)


def test_a_broken_log_of_valkey_is_refused_with_the_remedy(own_folder: Path) -> None:
    with (
        start(EmbeddedSettings(data_dir=own_folder)) as servers,
        redis.Redis.from_url(servers.redis_url) as client,
    ):
        client.set("kept", "43")
    (log,) = (home_of(own_folder) / "valkey" / "appendonlydir").glob("*.incr.aof")
    log.write_bytes(b"*1\r\nx" + log.read_bytes())

    with pytest.raises(ServerUnavailable, match="move valkey/appendonlydir out"):
        start(EmbeddedSettings(data_dir=own_folder))


def runs(pid: int) -> bool:
    """Whether the process runs; one that ended may wait to be reaped by whoever adopted it."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return told.rpartition(")")[2].split()[0] != "Z"


def test_a_removed_data_folder_ends_its_servers(
    own_folder: Path, state_of: StateOf, eventually: Eventually
) -> None:
    with start(EmbeddedSettings(data_dir=own_folder), durable=False):
        state = state_of(own_folder)

        shutil.rmtree(own_folder, ignore_errors=True)  # the servers remove files as they end

        pids = (state["guard_pid"], *state["pids"].values())
        eventually(lambda: not any(runs(pid) for pid in pids))


def test_a_cluster_that_somebody_serves_by_hand_is_left_alone(
    own_folder: Path, place: Path, eventually: Eventually
) -> None:
    account = server_account(None)
    sockets = place / "by-hand"
    sockets.mkdir()
    shutil.chown(sockets, account.uid, account.gid)
    cluster = home_of(own_folder) / "postgres"
    options = ("listen_addresses=", f"unix_socket_directories={sockets}")
    server = subprocess.Popen(
        [
            find_binaries().postgres_bin / "postgres",
            *("-D", cluster),
            *(part for option in options for part in ("-c", option)),
        ],
        stderr=subprocess.DEVNULL,
        env={},
        **account.popen_arguments(),
    )
    eventually((sockets / ".s.PGSQL.5432").exists)

    with pytest.raises(ServerUnavailable, match=f"process {server.pid} serves this data already"):
        start(EmbeddedSettings(data_dir=own_folder), durable=False)

    alive = server.poll() is None
    server.send_signal(signal.SIGINT)
    assert alive
    assert server.wait(timeout=30) == 0


def test_a_log_that_has_grown_is_set_aside_once(folder: Path, eventually: Eventually) -> None:
    log = folder / "postgres.log"
    log.write_bytes(bytes(LOG_BYTES_MAX + 1))

    with start(EmbeddedSettings(data_dir=folder), durable=False):
        eventually((folder / "postgres.log.1").exists)
        eventually(lambda: log.stat().st_size < LOG_BYTES_MAX)

    assert "shut down" in log.read_text()
    (folder / "postgres.log.1").unlink()


def test_an_interrupt_from_the_terminal_does_not_reach_the_servers(
    folder: Path, psql: Psql, program: Callable[..., Any]
) -> None:
    user = program(folder)
    url = user.ready()["postgres_url"]

    os.killpg(user.process.pid, signal.SIGINT)  # the program ignores it, as one that cleans up

    assert psql(url, "SELECT 1") == "1"
    assert user.end() == 0


def test_a_guard_that_is_told_to_end_stops_the_servers_cleanly(
    folder: Path, state_of: StateOf, eventually: Eventually, gone: Gone
) -> None:
    with start(EmbeddedSettings(data_dir=folder), durable=False) as servers:
        os.kill(state_of(folder)["guard_pid"], signal.SIGTERM)

        eventually(lambda: gone(folder))

    assert state_of(folder)["phase"] == "stopped"
    assert "database system is shut down" in servers.log_files["postgres"].read_text()
