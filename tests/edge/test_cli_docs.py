"""`docs/cli.md` names every command and option there is, and none that is not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from mnemic.edge.cli.endings import EXIT_CODES
from mnemic.edge.main import app

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
SHARED = {"--user", "--org", "--project", "--agent-type", "--agent", "--session"}
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def commands(group: Any = None, path: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """Every command by its whole name, with its options."""
    group = get_command(app()) if group is None else group
    found: dict[str, set[str]] = {}
    for name, command in group.commands.items():
        here = (*path, name)
        if hasattr(command, "commands"):
            found |= commands(command, here)
        else:
            found[" ".join(here)] = options(command)
    return found


def options(command: Any) -> set[str]:
    declared = {text for parameter in command.params for text in parameter.opts}
    return {text for text in declared if text.startswith("-")} - {"--help"}


def section(name: str) -> str:
    found = re.search(
        rf"^## mnemic {name}\b[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
    assert found, f"docs/cli.md has no section on `mnemic {name}`"
    return found[1]


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_of_a_command_stands_in_its_section(name: str) -> None:
    own = commands()[name] - SHARED

    named = set(OPTION.findall(section(name)))

    assert own <= named


@pytest.mark.parametrize("name", sorted(commands()))
def test_no_section_names_an_option_that_is_not_there(name: str) -> None:
    written = set(re.findall(r"^\| `(-[^|]*)` \|", section(name), re.MULTILINE))

    named = {option for text in written for option in OPTION.findall(text)}

    assert named <= commands()[name]


def test_every_section_is_a_command() -> None:
    headings = re.findall(r"^## mnemic ([a-z -]+?)(?: [A-Z\[]|$)", PAGE, re.MULTILINE)

    assert sorted(headings) == sorted(commands())


def test_the_options_of_the_program_and_the_scope_are_there() -> None:
    common = PAGE.partition("## mnemic demo")[0]

    named = set(OPTION.findall(common))

    assert options(get_command(app())) | SHARED <= named


def test_the_exit_codes_are_there() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}

    assert listed == {0, 1, 130, 141} | set(EXIT_CODES.values())
