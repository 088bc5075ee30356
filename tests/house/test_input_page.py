"""`docs/input.md` says the bounds that hold: each number is the code's, and none is left out."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from mnemic.settings import MemorySettings, value_names, variable_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "input.md"
CHECKS = (
    "model.filter_names",
    "model.filter_values",
    "model.filters",
    "model.normalise",
    "model.scope",
    "model.working",
    "service.parsing",
    "service.record_episode",
    "service.record_fact",
    "service.record_procedure",
    "service.procedures",
    "service.episodes",
    "service.facts",
    "service.forget",
    "service.recall",
    "store.working.pattern",
)
# Bounds of what comes out or is held inside, which no input meets.
INNER = {
    "model.normalise.KEY_BYTES_MAX",
    "service.forget.ATTEMPTS_MAX",
    "model.normalise.SHOWN_CHARS_MAX",
    "model.normalise.INTEGER_MAX",
    "service.episodes.LESSONS_SHOWN_MAX",
    "service.episodes.TOPICS_SHOWN_MAX",
    "service.procedures.PATTERNS_MAX",
    "service.procedures.CANDIDATES_MAX",
    "service.procedures.CONDITIONS_CACHED_MAX",
    "service.record_procedure.PATTERN_MEMORY_MAX",
    "service.record_procedure.PATTERNS_CACHED_MAX",
}
SET = re.compile(r"limits\.\w+|recall\.limit_max|working\.(?:keys?|value|bytes|scratchpad)_\w+")
_ROW = re.compile(
    r"^\| (?P<what>[^|]+) \| (?P<bound>[\d,]+)[^|]* \| `(?P<by>[\w.]+)` \|$", re.MULTILINE
)


def rows() -> dict[str, int]:
    """The bounds on the page, by what sets them."""
    found = _ROW.finditer(PAGE.read_text(encoding="utf-8"))
    return {row["by"]: int(row["bound"].replace(",", "")) for row in found}


def constants(module: str) -> dict[str, int]:
    """The bounds that a module holds of its own."""
    source = Path(str(import_module(f"mnemic.{module}").__file__))
    names = [
        name.id
        for node in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name) and re.fullmatch(r"[A-Z]\w*_MAX|YEAR_MIN", name.id)
    ]
    return {f"{module}.{name}": getattr(import_module(f"mnemic.{module}"), name) for name in names}


def settings() -> dict[str, int]:
    """The bounds of what is held, as they are unless set."""
    held = MemorySettings.model_construct()
    return {
        variable_of(name): getattr(getattr(held, name.split(".")[0]), name.split(".")[1])
        for name in value_names()
        if SET.fullmatch(name)
    }


@pytest.fixture
def held() -> dict[str, int]:
    fixed = {name: value for module in CHECKS for name, value in constants(module).items()}
    return {name: value for name, value in fixed.items() if name not in INNER} | settings()


def test_every_bound_on_the_page_is_the_one_that_holds(held: dict[str, int]) -> None:
    told = rows()

    assert len(told) > 40
    assert {name: told[name] for name in told if held.get(name) != told[name]} == {}


def test_every_bound_that_holds_is_on_the_page(held: dict[str, int]) -> None:
    assert sorted(held.keys() - rows().keys()) == []
