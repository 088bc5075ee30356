"""Each dependency has its reason, its place in the lock, and a licence we may ship with."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PERMISSIVE = re.compile(
    r"\b(?:MIT|MIT-0|BSD|0BSD|Apache|ISC|PSF|Zlib|CC0|Python Software Foundation)\b", re.IGNORECASE
)
COPYLEFT = re.compile(r"\b(?:[AL]?GPL|MPL|EPL|CDDL|EUPL|SSPL|BUSL|Mozilla|GNU)", re.IGNORECASE)
EXCEPTIONS = {
    "hypothesis": "MPL-2.0; for development only",
    "orjson": "MPL-2.0 for some files; copyleft ends at the file, and we change none",
    "pathspec": "MPL-2.0; for development only (hatchling, mypy)",
    "tqdm": "MPL-2.0 for some files; comes with tokenizers, and we change none",
}
# Locked for other platforms or other interpreters than most.
ELSEWHERE = {"async-timeout", "colorama", "httpx2-jsfetch", "pywin32", "tzdata"}


@pytest.fixture(scope="module")
def locked(root: Path) -> dict[str, set[str]]:
    """The versions of each locked package."""
    versions: dict[str, set[str]] = {}
    text = (root / "requirements.lock").read_text(encoding="utf-8")
    for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE):
        versions.setdefault(name, set()).add(version)
    return versions


@pytest.fixture(scope="module")
def required(project: dict[str, Any]) -> list[Requirement]:
    """Everything that pyproject.toml asks for."""
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    return [Requirement(text) for group in groups for text in group]


def test_every_dependency_has_its_reason_beside_it(root: Path, required: list[Requirement]) -> None:
    text = (root / "pyproject.toml").read_text(encoding="utf-8")

    reasons = dict(
        re.findall(r'^[^#\n]*"([A-Za-z][\w.-]*)[^"\n]*"[\],]*\s+# (\S.*)$', text, re.MULTILINE)
    )

    missing = {one.name for one in required} - set(reasons)
    assert missing == set()


def imported_by(folder: Path) -> dict[str, str]:
    """The third-party distributions that a folder's files import, each with one such file."""
    owners = packages_distributions()
    paths = list(folder.rglob("*.py"))
    beside = {name for path in paths for name in (path.stem, path.parent.name)} | {"mnemic"}
    found = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top not in beside:
                    owner = owners.get(top, [top])[0]
                    found[canonicalize_name(owner)] = f"{path.name}: {name}"
    return found


@pytest.mark.parametrize("folder", ["backend", "migrations", "tests", "tools", "benchmarks"])
def test_what_is_imported_is_asked_for(
    root: Path, project: dict[str, Any], required: list[Requirement], folder: str
) -> None:
    serving = [*project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        serving += extra
    wanted = [Requirement(text) for text in serving]
    if folder in {"tests", "tools", "benchmarks"}:
        wanted = required
    if folder == "tools":  # each has an environment of its own
        lines = [
            line.partition("#")[0].strip()
            for path in (root / folder).glob("*.in")
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        wanted = [*required, *(Requirement(line) for line in lines if line)]

    imported = imported_by(root / folder)

    names = {canonicalize_name(one.name) for one in wanted}
    assert {name: place for name, place in imported.items() if name not in names} == {}


def test_what_is_asked_for_is_used(root: Path, project: dict[str, Any]) -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in (root / "backend").rglob("*.py"))
    owners: dict[str, set[str]] = {}
    for top, names in packages_distributions().items():
        for name in names:
            owners.setdefault(canonicalize_name(name), set()).add(top)

    names = [Requirement(text).name for text in project["project"]["dependencies"]]
    unused = [
        name for name in names if not any(top in texts for top in owners[canonicalize_name(name)])
    ]

    assert unused == []


def test_the_lock_satisfies_what_is_asked_for(
    required: list[Requirement], locked: dict[str, set[str]]
) -> None:
    unmet = [
        str(one)
        for one in required
        if not (versions := locked.get(canonicalize_name(one.name), set()))
        or not all(one.specifier.contains(version) for version in versions)
    ]

    assert unmet == []


def test_every_locked_package_has_digests(root: Path) -> None:
    text = (root / "requirements.lock").read_text(encoding="utf-8")

    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]

    assert len(blocks) > 50
    assert [block for block in blocks if "--hash=sha256:" not in block] == []


def licence(name: str) -> str:
    """What the installed package says of its licence."""
    told = distribution(name).metadata
    stated = told.get("License-Expression") or (told.get("License") or "").partition("\n")[0]
    classified = [
        text.rpartition(" :: ")[2]
        for text in told.get_all("Classifier", [])
        if text.startswith("License ::")
    ]
    return " / ".join(filter(None, [stated, *classified]))


def test_the_licence_of_every_locked_package_is_permissive(locked: dict[str, set[str]]) -> None:
    licences = {}
    for name in locked:
        try:
            licences[name] = licence(name)
        except PackageNotFoundError:
            assert name in ELSEWHERE, f"{name} is locked and not installed"

    doubtful = {
        name: text
        for name, text in licences.items()
        if COPYLEFT.search(text) or not PERMISSIVE.search(text)
    }

    assert doubtful.keys() == EXCEPTIONS.keys(), doubtful
