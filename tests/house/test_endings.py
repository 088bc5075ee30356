"""What a context manager opens is closed when its block fails, too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDERS = ("backend", "tests", "tools", "benchmarks")
# What nobody needs once the block has failed, each with the reason.
ON_SUCCESS_ALONE = {
    "timed": "a step that failed has no time to tell",
    "without_force": "the transaction of the migration is rolled back as a whole",
}


def left_open(source: str) -> list[str]:
    """The names of context managers that go on after their `yield` only if nothing was raised."""
    return [
        function.name
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and any("contextmanager" in ast.unparse(one) for one in function.decorator_list)
        and any(
            _yields(statement) and not isinstance(statement, ast.Try) and not _returns(statement)
            for statement in function.body[:-1]
        )
    ]


def _yields(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(statement))


def _returns(statement: ast.stmt) -> bool:
    """Whether it is a case of its own, with nothing after it."""
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return)


def test_whatever_is_opened_is_closed_when_the_block_fails(root: Path) -> None:
    found = {
        name
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
        for name in left_open(path.read_text(encoding="utf-8"))
    }

    assert found == set(ON_SUCCESS_ALONE)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("one = open_it()\n    yield one\n    one.close()", ["opened"]),
        ("with other() as one:\n        yield one\n    one.close()", ["opened"]),
        ("try:\n        yield one\n    finally:\n        one.close()", []),
        ("with open_it() as one:\n        yield one", []),
    ],
)
def test_a_close_that_a_fault_jumps_over_is_found(body: str, found: list[str]) -> None:
    source = f"@contextmanager\ndef opened():\n    {body}\n"

    assert left_open(source) == found
