"""The import contracts hold, cover the whole package, and fail when they are broken."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

# Top-level modules that stand beside the rings, each with the reason.
BESIDE = {
    "__init__": "re-exports names of every ring, lazily",
    "embedded": "starts the servers; knows no ring but the errors",
    "settings": "sections are handed to every ring",
    "settings_context": "a section of them",
    "settings_embedding": "a section of them",
    "settings_ranking": "a section of them",
    "settings_section": "what each section of them is",
    "settings_values": "values of the settings that are checked, and shown without passwords",
    "settings_reading": "reads them for the entry points and says where each came from",
    "testing": "is for hosts' tests",
}
# Whatever tells the time of day; how long something took is no matter of the clock.
CLOCKS = (
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
    *("time.time", "time.time_ns", "time.localtime", "time.gmtime"),
)
STORAGE_LIBRARIES = ["sqlalchemy", "asyncpg", "redis", "pgvector", "alembic"]


@pytest.fixture(scope="module")
def contracts(project: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in project["tool"]["importlinter"]["contracts"]}


@pytest.fixture(scope="module")
def layers(contracts: dict[str, dict[str, Any]]) -> list[list[str]]:
    """The rings from the outermost; those that share a line are one layer."""
    return [re.split(r" [|:] ", line) for line in contracts["rings"]["layers"]]


@pytest.fixture
def copy(root: Path, package: Path, tmp_path: Path) -> Path:
    """A folder with a copy of the package, and with the contracts."""
    shutil.copytree(package, tmp_path / "mnemic", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


def plant(folder: Path, module: str, imported: list[str]) -> str:
    """Adds imports below `module`; gives the name of the module that then holds them."""
    place = folder / Path(*module.split("."))
    lines = "".join(f"import {name}\n" for name in imported)
    if place.is_dir():
        (place / "planted.py").write_text(lines, encoding="utf-8")
        return f"{module}.planted"
    with place.with_suffix(".py").open("a", encoding="utf-8") as file:
        file.write(lines)
    return module


def lint(folder: Path, contract: str) -> tuple[int, set[tuple[str, str]]]:
    """The exit status, and the imports that are named as forbidden."""
    ran = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--contract", contract],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "COLUMNS": "400"},
        check=False,
        capture_output=True,
        text=True,
    )
    named = re.findall(r"(mnemic[\w.]*) -> ([\w.]+)", ran.stdout)
    assert re.search(r"Contracts: \d kept, \d broken", ran.stdout), ran.stdout + ran.stderr
    return ran.returncode, set(named)


def test_the_package_as_it_is_keeps_every_contract(
    copy: Path, contracts: dict[str, dict[str, Any]]
) -> None:
    results = {name: lint(copy, name) for name in contracts}

    assert results == dict.fromkeys(["rings", "edges", "model", "storage"], (0, set()))


def test_every_import_of_an_outer_ring_is_refused(copy: Path, layers: list[list[str]]) -> None:
    pairs = [
        (inner, outer)
        for above, below in combinations(layers, 2)
        for outer in above
        for inner in below
    ]
    planted = set()
    for inner in {inner for inner, _ in pairs}:
        outers = [outer for lower, outer in pairs if lower == inner]
        holder = plant(copy, inner, outers)
        planted |= {(holder, outer) for outer in outers}

    status, named = lint(copy, "rings")

    assert status == 1
    assert planted - named == set()


def test_store_embed_and_think_do_not_know_each_other(copy: Path, layers: list[list[str]]) -> None:
    together = next(layer for layer in layers if "mnemic.store" in layer)
    planted = set()
    for ring in together:
        others = [other for other in together if other != ring]
        holder = plant(copy, ring, others)
        planted |= {(holder, other) for other in others}

    status, named = lint(copy, "rings")

    assert together == ["mnemic.store", "mnemic.embed", "mnemic.think"]
    assert (status, planted - named) == (1, set())


def test_an_edge_that_imports_another_is_refused(
    copy: Path, contracts: dict[str, dict[str, Any]]
) -> None:
    edges = contracts["edges"]["modules"]
    planted = set()
    for edge in edges:
        others = [other for other in edges if other != edge]
        holder = plant(copy, edge, others)
        planted |= {(holder, other) for other in others}

    status, named = lint(copy, "edges")

    assert (status, planted - named) == (1, set())


def test_a_third_party_library_in_the_model_is_refused(
    copy: Path, contracts: dict[str, dict[str, Any]]
) -> None:
    libraries = contracts["model"]["forbidden_modules"]
    holders = [plant(copy, ring, libraries) for ring in ("mnemic.model", "mnemic.errors")]

    status, named = lint(copy, "model")

    assert status == 1
    assert {(holder, name) for holder in holders for name in libraries} - named == set()


def test_a_database_library_outside_the_storage_ring_is_refused(
    copy: Path, contracts: dict[str, dict[str, Any]]
) -> None:
    sources = contracts["storage"]["source_modules"]
    holders = [plant(copy, ring, STORAGE_LIBRARIES) for ring in sources]

    status, named = lint(copy, "storage")

    assert status == 1
    assert {(holder, name) for holder in holders for name in STORAGE_LIBRARIES} - named == set()


def test_no_module_escapes_the_rings(package: Path, layers: list[list[str]]) -> None:
    modules = {
        path.stem
        for path in package.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }

    ringed = {ring.removeprefix("mnemic.") for layer in layers for ring in layer}

    assert modules - ringed == set(BESIDE)


def test_no_edge_escapes_its_contract(package: Path, contracts: dict[str, dict[str, Any]]) -> None:
    edges = {
        f"mnemic.edge.{path.name}"
        for path in (package / "edge").iterdir()
        if (path / "__init__.py").exists()
    }

    assert edges == set(contracts["edges"]["modules"])


def test_every_ring_but_storage_and_wiring_is_kept_from_the_databases(
    layers: list[list[str]], contracts: dict[str, dict[str, Any]]
) -> None:
    may = {"mnemic.store", "mnemic.schema", "mnemic.wiring", "mnemic.model", "mnemic.errors"}

    rings = {ring for layer in layers for ring in layer}

    assert set(contracts["storage"]["source_modules"]) == rings - may
    assert contracts["storage"]["forbidden_modules"] == STORAGE_LIBRARIES


def imported(path: Path) -> set[str]:
    """The modules that a file imports, by their whole names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_the_model_imports_the_standard_library_alone(package: Path) -> None:
    files = [package / "errors.py", *(package / "model").rglob("*.py")]

    outside = {
        (path.name, name)
        for path in files
        for name in imported(path)
        if name.partition(".")[0] not in sys.stdlib_module_names
        and not name.startswith(("mnemic.model", "mnemic.errors"))
    }

    assert outside == set()


def test_the_clock_and_the_environment_are_read_in_one_place_each(package: Path) -> None:
    readers: dict[str, set[str]] = {name: set() for name in (*CLOCKS, "os.environ")}
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        spelled = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for name, places in readers.items():
            if name in spelled:
                places.add(str(path.relative_to(package)))

    told = {name: places for name, places in readers.items() if places}
    assert told == {
        "datetime.now": {"wiring.py"},
        "os.environ": {"settings.py", "edge/cli/bench_peers.py"},  # the latter tells mem0 by it
        "time.gmtime": {"embedded/guard.py"},  # a process of its own, which dates its log
    }
