"""What `mnemic` exports: one list, each name where it says it is, documented, and enough."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

import mnemic
from mnemic.store.revisions import known_revisions, migrations_folder

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
    "MemoryStore",
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


def test_serving_needs_neither_alembic_nor_sqlalchemy() -> None:
    heavy = ["alembic", "sqlalchemy", "onnxruntime", "celery", "mcp", "openai"]
    code = f"import sys, mnemic.manager; print([m for m in {heavy} if m in sys.modules])"

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert told.stdout.strip() == "[]"


def test_the_files_of_the_migrations_are_its_revisions() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    script = ScriptDirectory.from_config(config)

    assert known_revisions() == tuple(
        revision.revision for revision in reversed(list(script.walk_revisions()))
    )
