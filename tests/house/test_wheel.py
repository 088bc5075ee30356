"""The wheel alone: what is in it, and the main job run from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_bytes
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without network and without isolation."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=root,
        check=True,
        capture_output=True,
    )
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment: the wheel, and links to the packages that it asks for, alone."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(place, with_pip=False, symlinks=True)
    paths = {"base": str(place), "platbase": str(place)}
    new = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    installed = Path(sysconfig.get_path("purelib"))
    for name in asked_for(wheel):
        for entry in {file.parts[0] for file in distribution(name).files or ()} - {".."}:
            if not (new / entry).exists():
                (new / entry).symlink_to(installed / entry)
    pip = [sys.executable, "-m", "pip", "--python", place / "bin" / "python"]
    quietly = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *quietly, wheel], check=True, capture_output=True)
    return place


def asked_for(wheel: Path) -> set[str]:
    """The installed distributions that the wheel needs, by its own metadata and theirs."""
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        told = message_from_bytes(archive.read(metadata))
    waiting = [(text, "") for text in told.get_all("Requires-Dist", [])]
    found: set[str] = set()
    while waiting:
        text, extra = waiting.pop()
        one = Requirement(text)
        name = canonicalize_name(one.name)
        if one.marker and not one.marker.evaluate({"extra": extra}):
            continue
        if name not in found or one.extras:
            found.add(name)
            needed = distribution(name).requires or ()
            waiting += [(needs, asked) for needs in needed for asked in ("", *one.extras)]
    return found


@pytest.fixture
def elsewhere(place: Path) -> Path:
    """A working folder that has nothing to do with the checkout."""
    folder = place / "some where"
    folder.mkdir(exist_ok=True)
    return folder


def run(command: list[object], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command with nothing in its environment that points to the checkout."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={
            "PATH": os.defpath,
            "HOME": str(folder),
            "MEM_EMBEDDED__DATA_DIR": str(folder / "data"),
        },
        check=False,
        capture_output=True,
        text=True,
    )


def test_the_wheel_holds_every_file_of_the_package(package: Path, names: set[str]) -> None:
    files = {
        f"mnemic/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert files - names == set()
    assets = {f"mnemic/assets/minilm/{name}" for name in ("tokenizer.json", "graph.onnx")}
    assert {"mnemic/py.typed", *assets} <= files
    assert any(name.endswith(".sql") for name in files)


def test_the_wheel_holds_migrations_and_examples(root: Path, names: set[str]) -> None:
    wanted = {
        f"mnemic/{path.relative_to(root)}"
        for folder in ("migrations", "examples")
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert "mnemic/migrations/env.py" in wanted
    assert wanted - names == set()


def test_the_wheel_holds_its_licences(names: set[str], project: dict[str, object]) -> None:
    version = project["project"]["version"]  # type: ignore[index]

    licences = {name for name in names if f"mnemic-{version}.dist-info/licenses/" in name}

    assert {name.partition("/licenses/")[2] for name in licences} == {
        "LICENSE",
        "backend/mnemic/assets/minilm/LICENSE",
    }


def test_the_wheel_holds_nothing_else(names: set[str]) -> None:
    strays = {
        name
        for name in names
        if not name.startswith(("mnemic/", "mnemic-")) or "__pycache__" in name or ".pyc" in name
    }

    assert strays == set()


def test_what_is_imported_is_the_wheels(environment: Path, elsewhere: Path, root: Path) -> None:
    program = (
        "import sys, json, mnemic, mnemic.manager, mnemic.edge.main\n"
        "ours = [m for n, m in sys.modules.items() if n.partition('.')[0] == 'mnemic']\n"
        "print(json.dumps([mnemic.__version__, [m.__file__ for m in ours], sys.path]))\n"
    )

    ran = run([environment / "bin" / "python", "-I", "-c", program], elsewhere)

    assert ran.returncode == 0, ran.stderr
    version, files, paths = json.loads(ran.stdout)
    assert version == "0.1.0"
    assert len(files) > 20
    assert [file for file in files if not file.startswith(str(environment))] == []
    assert [path for path in paths if path.startswith(str(root / "backend"))] == []


@pytest.mark.story
def test_the_main_job_runs_from_the_wheel_alone(environment: Path, elsewhere: Path) -> None:
    ran = run([environment / "bin" / "mnemic", "demo", "--json"], elsewhere)

    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["embedded"], told["ingest"]["episodes_created"]) == (True, 6)
    assert "frozen on Fridays" in told["recall"][0]["hits"][0]["text"]
    assert "frozen on Fridays" in told["context"]["text"]
    assert 0 < told["context"]["tokens"] <= 300
    assert [path.name for path in elsewhere.iterdir()] == ["data"]


def test_the_source_distribution_can_build_the_same_wheel(
    root: Path, names: set[str], tmp_path: Path
) -> None:
    build = [sys.executable, "-m", "hatchling", "build"]
    subprocess.run(
        [*build, "--target", "sdist", "--directory", tmp_path],
        cwd=root,
        check=True,
        capture_output=True,
    )
    [archive] = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path, filter="data")
    [source] = [path for path in tmp_path.iterdir() if path.is_dir()]

    subprocess.run(
        [*build, "--target", "wheel", "--directory", tmp_path],
        cwd=source,
        check=True,
        capture_output=True,
    )

    [again] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(again) as built:
        assert set(built.namelist()) == names
