"""What the documentation shows, done: snippets are run, commands parsed, links followed.

A comment above a fenced block says what it is:

    <!-- runnable -->   run as written, in a new home, on embedded servers
    <!-- commands -->   each command is held against the command line, and not run

In a console block a line that begins with "$ " is a command, another one is output that must
appear, where "…" stands for anything.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from mnemic.embedded import start
from mnemic.settings import EmbeddedSettings

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
SHELLS = {"console", "bash", "sh"}
# What sets up the folder that the tests run in: shown, neither run nor parsed here.
SET_UP = re.compile(r"^(?:make|git clone|cd|pip install|docker compose|export)\b")
FOLDERS = "backend|benchmarks|docker|docs|examples|migrations|tests|tools"

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[a-z ]+) -->\n+)?^```(?P<language>[a-z]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Snippet:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    mark: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> list[tuple[str, list[str]]]:
        """The commands of a console block, each with the output that is shown below it."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif found and line.strip():
                found[-1][1].append(line)
        return found


def snippets_of(text: str, page: str) -> list[Snippet]:
    """The fenced blocks of a page, in order."""
    return [
        Snippet(
            page,
            text.count("\n", 0, seen.start("text")) + 1,
            seen["language"],
            seen["mark"],
            seen["text"],
        )
        for seen in _BLOCK.finditer(text)
    ]


SNIPPETS = [
    snippet
    for path in PAGES
    for snippet in snippets_of(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))
]
RUNNABLE = [one for one in SNIPPETS if one.mark == "runnable"]
COMMANDS = [one for one in SNIPPETS if one.mark == "commands"]


@pytest.fixture(scope="module")
def home(place: Path) -> Iterator[dict[str, str]]:
    """The environment of a newcomer: a new home, and servers whose data lie in it."""
    data = place / "data"
    servers = start(EmbeddedSettings(data_dir=data))  # stay up between the snippets
    binaries = Path(sys.executable).parent
    yield {
        "HOME": str(place),
        "MEM_EMBEDDED__DATA_DIR": str(data),
        "PATH": f"{binaries}{os.pathsep}{os.defpath}",
        "COLUMNS": "200",
    }
    servers.close()


def run(command: list[str | Path], environment: dict[str, str]) -> str:
    """The output of a command that must succeed and be quiet about faults."""
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, f"{command}: {ran.stderr}"
    assert "Traceback" not in ran.stderr
    return ran.stdout


def shows(output: str, line: str) -> bool:
    """Whether a line of the output is the one shown, white space at the ends aside."""
    pattern = re.sub(r"([\[\]*?])", r"[\1]", line.strip()).replace("…", "*")
    return any(fnmatchcase(given.strip(), pattern) for given in output.splitlines())


def perform(snippet: Snippet, environment: dict[str, str]) -> str:
    """Runs a snippet; what it printed."""
    if snippet.language == "python":
        return run([sys.executable, "-W", "error", "-c", snippet.text], environment)
    assert snippet.language in SHELLS
    if snippet.language != "console":
        return run(["bash", "-euo", "pipefail", "-c", snippet.text], environment)
    printed = []
    for command, shown in snippet.commands():
        # The command that `make demo` leaves in the checkout is this environment's own.
        output = run(["bash", "-c", command.replace(".venv/bin/", "")], environment)
        missing = [line for line in shown if not shows(output, line)]
        assert missing == [], f"{command} printed\n{output}"
        printed.append(output)
    return "".join(printed)


@pytest.mark.story
@pytest.mark.parametrize("snippet", RUNNABLE, ids=str)
def test_a_runnable_snippet_runs_as_written(snippet: Snippet, home: dict[str, str]) -> None:
    printed = perform(snippet, home)

    assert printed.strip() or "assert " in snippet.text


@pytest.mark.story
def test_the_readme_leads_to_a_recalled_memory(home: dict[str, str]) -> None:
    on_the_command_line, in_python = [one for one in RUNNABLE if one.page == "README.md"][:2]

    printed = [perform(one, home) for one in (on_the_command_line, in_python)]

    assert (on_the_command_line.language, in_python.language) == ("console", "python")
    assert ["Deploys are frozen on Fridays" in output for output in printed] == [True, True]


@pytest.mark.parametrize("snippet", COMMANDS, ids=str)
def test_a_shown_command_is_one_of_the_command_line(
    snippet: Snippet, parsed: Callable[[list[str]], dict[str, Any]]
) -> None:
    commands = [shlex.split(command, comments=True) for command, _ in snippet.commands()]

    names = [parsed(words[1:])["command"] for words in commands]

    assert names
    assert all(Path(words[0]).name == "mnemic" for words in commands)


def test_every_block_of_a_language_is_marked_or_only_sets_up() -> None:
    unmarked = [
        str(one)
        for one in SNIPPETS
        if one.language in SHELLS | {"python"} and one.mark not in {"runnable", "commands"}
        if one.language == "python" or not all(SET_UP.match(text) for text, _ in one.commands())
    ]

    assert unmarked == []


def test_the_readme_shows_both_ways_in() -> None:
    languages = [one.language for one in RUNNABLE if one.page == "README.md"]

    assert languages.count("console") >= 1
    assert languages.count("python") >= 1


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(path: Path) -> None:
    text = _BLOCK.sub("", path.read_text(encoding="utf-8"))
    links = [
        path.parent / target.partition("#")[0]
        for target in re.findall(r"\]\(([^)]+)\)", text)
        if target.partition("#")[0] and "://" not in target
    ]
    quoted = [ROOT / name for name in re.findall(rf"`((?:{FOLDERS})/[\w./-]+)`", text)]

    assert [str(one) for one in (*links, *quoted) if not one.exists()] == []


def test_marks_languages_and_outputs_are_read_as_this_file_says() -> None:
    text = (
        "# Page\n\n<!-- runnable -->\n```console\n$ mnemic x \\\n    --y\nfound …\n$ z\n```\n"
        "\n```python\nprint(1)\n```\n"
    )

    first, second = snippets_of(text, "page.md")

    assert (str(first), first.language, first.mark) == ("page.md:5", "console", "runnable")
    assert [shlex.split(words) for words, _ in first.commands()] == [["mnemic", "x", "--y"], ["z"]]
    assert [shown for _, shown in first.commands()] == [["found …"], []]
    assert (second.language, second.mark, second.text) == ("python", None, "print(1)\n")


@pytest.mark.parametrize(
    ("line", "shown"),
    [("found 3 [ok]", True), ("found … [ok]", True), ("found", False), ("found ? [ok]", False)],
)
def test_shown_output_is_compared_to_the_letter_but_for_an_ellipsis(
    line: str, *, shown: bool
) -> None:
    assert shows("first\n  found 3 [ok]\n", line) is shown
