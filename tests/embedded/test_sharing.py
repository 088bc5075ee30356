from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemic.embedded import EmbeddedServers, start
from mnemic.errors import ConfigurationError
from mnemic.settings import EmbeddedSettings

Psql = Callable[..., str]
Eventually = Callable[[Callable[[], Any]], None]
StateOf = Callable[[Path], dict[str, Any]]

STARTERS = 8
# of each in a race of two; every turn is a chance that a user comes while the guard leaves
TURNS = 6


def test_two_programs_on_a_folder_share_one_server_until_the_last_has_left(
    folder: Path, psql: Psql, program: Callable[..., Any], state_of: StateOf
) -> None:
    other = program(folder, closes=True)
    theirs = other.ready()
    ours = start(EmbeddedSettings(data_dir=folder), durable=False)
    shared = state_of(folder)

    other.end()
    after_the_first = psql(ours, "SELECT 1")
    ours.close()

    assert theirs == {"postgres_url": ours.postgres_url(), "redis_url": ours.redis_url}
    assert after_the_first == "1"
    assert state_of(folder)["instance"] == shared["instance"]
    assert not Path(f"/proc/{shared['pids']['postgres']}").exists()


def test_different_folders_do_not_clash(folder: Path, own_folder: Path, psql: Psql) -> None:
    other = EmbeddedSettings(data_dir=own_folder)

    with start(EmbeddedSettings(data_dir=folder), durable=False) as one:
        with start(other, durable=False) as two:
            folders = {psql(servers, "SHOW data_directory") for servers in (one, two)}
        still = psql(one, "SELECT 1")

    assert len(folders) == 2
    assert still == "1"


def test_programs_that_start_at_the_same_moment_share_one_guard(
    new_folder: Path, program: Callable[..., Any], state_of: StateOf, eventually: Eventually
) -> None:
    programs = [program(new_folder) for _ in range(STARTERS)]

    told = [one.ready() for one in programs]
    state = state_of(new_folder)
    codes = [one.end() for one in programs]

    assert all(one == told[0] for one in told)
    assert codes == [0] * STARTERS
    assert state["restarts"] == {"postgres": 0, "valkey": 0}
    eventually(lambda: state_of(new_folder)["phase"] == "stopped")
    assert state_of(new_folder)["instance"] == state["instance"]


def test_threads_of_a_program_share_one_server(folder: Path, state_of: StateOf) -> None:
    started: list[EmbeddedServers] = []

    def begin() -> None:
        started.append(start(EmbeddedSettings(data_dir=folder), durable=False))

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = state_of(folder)
    for servers in started:
        servers.close()

    assert len({servers.postgres_url() for servers in started}) == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in state["pids"].values())


def test_a_forked_child_does_not_stop_the_servers_of_its_parent(folder: Path, psql: Psql) -> None:
    with start(EmbeddedSettings(data_dir=folder), durable=False) as servers:
        for closes in (True, False):
            child = os.fork()
            if child == 0:
                if closes:
                    servers.close()
                os._exit(0)
            os.waitpid(child, 0)
        answer = psql(servers, "SELECT 1")

    assert answer == "1"


def test_a_program_that_comes_while_the_last_one_leaves_gets_servers(
    folder: Path, psql: Psql
) -> None:
    answers: list[str] = []

    def come_and_go() -> None:
        for _ in range(TURNS):
            with start(EmbeddedSettings(data_dir=folder), durable=False) as servers:
                answers.append(psql(servers, "SELECT 1"))

    threads = [threading.Thread(target=come_and_go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == ["1"] * (2 * TURNS)


def test_durable_use_of_servers_that_are_not_is_refused(folder: Path) -> None:
    with (
        start(EmbeddedSettings(data_dir=folder), durable=False),
        pytest.raises(ConfigurationError, match="durable=False by another program"),
    ):
        start(EmbeddedSettings(data_dir=folder))


def test_durable_servers_are_not_discarded(folder: Path) -> None:
    with (
        start(EmbeddedSettings(data_dir=folder)) as servers,
        pytest.raises(ConfigurationError, match="durable=True"),
    ):
        servers.discard()


def test_a_state_of_another_release_is_refused_and_so_is_one_that_is_broken(
    own_folder: Path,
) -> None:
    state = own_folder / "state.json"
    with start(EmbeddedSettings(data_dir=own_folder), durable=False):
        text = state.read_text()
        other = json.dumps({**json.loads(text), "format": 0})
        for wrong in (other, "", text[:40], "[]", "null", "[" * 100_000, "\x00" * 40, "\udcff"):
            state.write_text(wrong, errors="surrogateescape")
            with pytest.raises(ConfigurationError, match=r"another release, or is broken"):
                start(EmbeddedSettings(data_dir=own_folder), durable=False)
