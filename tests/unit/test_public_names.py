"""What `mnemic` exports: one list, each name where it says it is, documented, and enough."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import mnemic

PLAN = [
    "EpisodeCreate",
    "Episode",
    "FactCreate",
    "Fact",
    "ProcedureCreate",
    "Procedure",
    "TaskState",
    "Step",
    "Outcome",
    "MemoryScope",
    "MemoryItem",
    "Scope",
    "Recall",
    "Hit",
    "Context",
    "Receipt",
    "MemoryManager",
    "MemorySettings",
    "upgrade",
]


def test_everything_the_design_names_is_exported() -> None:
    assert set(PLAN) <= set(mnemic.__all__)


@pytest.mark.parametrize("name", mnemic.__all__)
def test_an_exported_name_is_there_and_documented(name: str) -> None:
    value = getattr(mnemic, name)

    assert name in dir(mnemic)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert (value.__doc__ or "").strip(), name


def test_what_a_type_checker_sees_is_what_is_exported() -> None:
    tree = ast.parse(Path(mnemic.__file__).read_text("utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]

    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert seen == mnemic._HOMES
    assert sorted(seen) == sorted(mnemic.__all__)


def test_every_error_is_exported_with_a_code_of_its_own() -> None:
    errors: list[type[mnemic.MnemicError]] = [mnemic.MnemicError]
    for kind in errors:
        errors += kind.__subclasses__()

    codes = [kind.code for kind in errors if kind.__module__ == "mnemic.errors"]
    names = {kind.__name__ for kind in errors if kind.__module__ == "mnemic.errors"}

    assert len(codes) == len(set(codes))
    assert names <= set(mnemic.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = mnemic.Nonsense  # type: ignore[attr-defined]
