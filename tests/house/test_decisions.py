"""The records of decisions and the changelog have their form, and name what there is."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
PARTS = ("Context.", "Decision.", "Consequences.", "Alternatives.", "Held by:")
WORDS_MAX = 400  # a page
WORDS_MAX_OF = {"0010-memory-architecture.md": 800}  # the architecture may take two
LINE_MAX = 130
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def parts_of(text: str) -> dict[str, str]:
    """The parts of a record by their names, in order."""
    pieces = re.split(r"^\*\*(\w[\w ]*[.:])\*\*", text, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_the_records_are_numbered_without_a_gap() -> None:
    numbers = [int(path.name[:4]) for path in RECORDS]

    assert numbers == list(range(1, len(RECORDS) + 1))
    assert len(RECORDS) >= 16


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_its_form(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    parts = parts_of(text)

    assert re.match(rf"# {path.name[:4]}: \S", text)
    assert tuple(parts) == PARTS
    sentences = re.findall(r"[.?!](?:\s|$)", parts["Context."])
    assert 2 <= len(sentences) <= 6
    decision = parts["Decision."].strip().split("\n\n")[0]
    assert re.fullmatch(r"[^.]+(?:\.(?=\w)[^.]+)*\.", decision, re.DOTALL), "one sentence"
    for name in ("Consequences.", "Alternatives."):
        assert re.search(r"^(?:- |\d\. )\S", parts[name], re.MULTILINE)
    assert len(text.split()) <= WORDS_MAX_OF.get(path.name, WORDS_MAX)
    assert max(map(len, text.splitlines())) <= LINE_MAX


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_what_holds_a_decision_exists(path: Path) -> None:
    held_by = parts_of(path.read_text(encoding="utf-8"))["Held by:"]

    names = re.findall(r"`([^`]+)`", held_by)

    assert names
    assert [name for name in names if not (ROOT / name).is_file()] == []


def test_the_index_lists_every_record_by_its_file() -> None:
    text = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")

    listed = re.findall(r"\| \[(\d{4})\]\(([^)]+)\) \|", text)

    assert listed == [(path.name[:4], path.name) for path in RECORDS]


def test_the_changelog_has_its_form(project: dict[str, Any]) -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    releases = re.findall(r"^## \[([^\]]+)\](?: - (\S+))?$", text, re.MULTILINE)
    kinds = re.findall(r"^### (.*)$", text, re.MULTILINE)

    assert text.startswith("# Changelog\n")
    assert releases[0] == ("Unreleased", "")
    assert set(kinds) <= KINDS
    assert len(re.findall(r"^## ", text, re.MULTILINE)) == len(releases)
    dated = [(version, date.fromisoformat(day)) for version, day in releases[1:]]
    assert dated == sorted(dated, key=lambda one: one[1], reverse=True)
    assert all(version != project["project"]["version"] for version, _ in dated[1:])


def test_every_change_is_one_entry_below_a_kind() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    body = text.partition("\n## ")[2].split("\n")[1:]

    strays = [line for line in body if line and not line.startswith(("- ", "  ", "### ", "## "))]
    assert strays == []
    assert sum(line.startswith("- ") for line in body) >= 10


def test_a_form_that_is_broken_would_be_seen() -> None:
    text = "# 0099: X\n\n**Context.** One. Two.\n\n**Decision.** This. And that.\n"

    parts = parts_of(text)

    assert tuple(parts) == ("Context.", "Decision.")
    assert not re.fullmatch(r"[^.]+(?:\.(?=\w)[^.]+)*\.", parts["Decision."].strip(), re.DOTALL)
