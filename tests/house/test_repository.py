"""What a file of this repository may not contain, and what stands at its top."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

TOP_LEVEL = {
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "alembic.ini",
    "backend",
    "benchmarks",
    "docker",
    "docker-compose.yml",
    "docs",
    "examples",
    "migrations",
    "pyproject.toml",
    "requirements.lock",
    "tests",
    "tools",
}

# This file holds what it looks for, and is left out.
UNFINISHED = re.compile("TODO|FIXME|XXX")
MACHINE_PATHS = re.compile(r"(?<![\w./-])/(?:work|root|home/\w+|Users|opt|mnt)/")
REGISTRY_HOSTS = re.compile(
    r"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|deb\.debian\.org|crates\.io|index-url *="
)

TARGETS = ("help", "demo", "test", "chaos", "check", "bench", "mutate", "graph", "clean", "lock")


def offending(readable: dict[Path, str], pattern: re.Pattern[str], root: Path) -> list[str]:
    """The lines that hold what a pattern finds, as file, number and match."""
    return [
        f"{path.relative_to(root)}:{number}: {seen[0]}"
        for path, text in readable.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if (seen := pattern.search(line))
    ]


@pytest.mark.parametrize(
    "pattern", [UNFINISHED, MACHINE_PATHS, REGISTRY_HOSTS], ids=["unfinished", "paths", "hosts"]
)
def test_no_committed_file_holds_what_belongs_elsewhere(
    readable: dict[Path, str], root: Path, pattern: re.Pattern[str]
) -> None:
    # Vocabularies and locks hold every string of letters; hosts are looked for in them too.
    data = {".json", ".lock"} if pattern is UNFINISHED else set()
    texts = {
        path: text
        for path, text in readable.items()
        if path.suffix not in data and path != Path(__file__)
    }

    found = offending(texts, pattern, root)
    assert found == [], "\n".join(found)


def test_what_is_looked_for_would_be_found(root: Path) -> None:
    # The tildes keep a plain search of the repository from finding what is planted here.
    text = "# TO~DO: later\nopen('/ro~ot/x')\nhttps://pypi~.org/\n".replace("~", "")
    readable = {root / "planted.py": text}

    found = [
        line
        for pattern in (UNFINISHED, MACHINE_PATHS, REGISTRY_HOSTS)
        for line in offending(readable, pattern, root)
    ]

    assert [line.split(": ")[0] for line in found] == [f"planted.py:{n}" for n in (1, 2, 3)]


def test_the_top_level_is_what_the_architecture_says(committed: list[Path], root: Path) -> None:
    assert {path.relative_to(root).parts[0] for path in committed} == TOP_LEVEL


def test_the_licence_is_apache_2(root: Path, project: dict[str, Any]) -> None:
    text = (root / "LICENSE").read_text(encoding="utf-8")

    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert project["project"]["license"] == "Apache-2.0"
    assert "LICENSE" in project["project"]["license-files"]


def test_the_package_is_typed(package: Path) -> None:
    assert (package / "py.typed").is_file()


def test_what_is_ignored_is_ignored_with_a_reason(root: Path) -> None:
    lines = (root / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if re.match(r' +"[A-Z]+\d*",', line)]

    assert len(rules) >= 20
    assert [line for line in rules if not re.search(r'",\s+# \S', line)] == []


def test_every_suppression_in_the_code_names_its_rule_and_its_reason(
    readable: dict[Path, str], root: Path
) -> None:
    bare = re.compile(
        r"#\s*(?:noqa|type:\s*ignore)(?!: [A-Z]+\d+(?:, [A-Z]+\d+)* +- \S|\[[\w-]+\])"
    )
    code = {
        path: text
        for path, text in readable.items()
        if path.suffix == ".py" and path != Path(__file__)
    }

    found = offending(code, bare, root)
    assert found == [], "\n".join(found)


def test_what_is_drawn_by_chance_is_drawn_by_one_option_and_no_variable(root: Path) -> None:
    readers = {"--seed": set[str](), "variable": set[str]()}
    for path in {*(root / "tests").rglob("*.py")} - {Path(__file__)}:
        text = path.read_text(encoding="utf-8")
        if 'getoption("--seed")' in text:
            readers["--seed"].add(path.parent.name)
        if re.search(r"(environ|getenv)\b.*_SEED\b", text):
            readers["variable"].add(path.parent.name)

    assert {"chaos", "isolation", "loops", "wire"} <= readers["--seed"]
    assert readers["variable"] == set()


def test_make_alone_tells_of_every_target(root: Path) -> None:
    told = subprocess.run(["make"], cwd=root, check=True, capture_output=True, text=True).stdout

    listed = {line.split()[1] for line in told.splitlines() if line.startswith("make ")}
    assert listed == set(TARGETS) - {"help"}


def test_every_target_can_be_made(root: Path) -> None:
    ran = subprocess.run(
        ["make", "--dry-run", *TARGETS], cwd=root, check=False, capture_output=True, text=True
    )

    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("script", ["tools/setup", ".ci/run"])
def test_scripts_can_be_run_and_are_sound(root: Path, script: str) -> None:
    path = root / script
    shell = path.read_text(encoding="utf-8").partition("\n")[0].rpartition("/")[2].split()[-1]

    checked = subprocess.run([shell, "-n", path], check=False, capture_output=True, text=True)

    assert path.stat().st_mode & 0o111 == 0o111
    assert (checked.returncode, checked.stderr) == (0, "")
