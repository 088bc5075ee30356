"""How long files, functions and the front door may be, counted."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
FACADE_METHODS_MAX = 15
FACADE_BODY_LINES_MAX = 10
# What makes a manager, opens and closes it.
CONSTRUCTORS = {"open", "embedded", "null", "start", "close"}
NAMES_THAT_SAY_NOTHING = {"utils", "util", "common", "helpers", "helper", "base", "misc"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def long_files(folder: Path) -> dict[str, int]:
    """The Python and SQL files over the budget, with their lines."""
    files = [path for path in folder.rglob("*") if path.suffix in {".py", ".sql"}]
    lines = {str(path.relative_to(folder)): len(path.read_text().splitlines()) for path in files}
    return {name: count for name, count in lines.items() if count > FILE_LINES_MAX}


def functions(folder: Path) -> Iterator[tuple[str, Function]]:
    """Every function below a folder, by file and name."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                yield f"{path.relative_to(folder)}:{node.name}", node


def length(node: Function) -> int:
    """The lines of a function, decorators and docstring included."""
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return (node.end_lineno or first) - first + 1


def long_functions(folder: Path) -> dict[str, int]:
    """The functions over the budget, with their lines."""
    return {
        name: length(node) for name, node in functions(folder) if length(node) > FUNCTION_LINES_MAX
    }


def body_lines(node: Function) -> int:
    """The lines of a function's body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def front_door(path: Path) -> dict[str, int]:
    """The public methods of MemoryManager beside its constructors, with their body's lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    [facade] = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "MemoryManager"
    ]
    methods = [node for node in facade.body if isinstance(node, Function)]
    return {
        node.name: body_lines(node)
        for node in methods
        if not node.name.startswith("_") and node.name not in CONSTRUCTORS
    }


def test_no_file_of_the_package_is_over_its_budget(package: Path) -> None:
    assert long_files(package) == {}


def test_no_function_of_the_package_is_over_its_budget(package: Path) -> None:
    assert long_functions(package) == {}


def test_migrations_tools_and_benchmarks_keep_the_same_budgets(root: Path) -> None:
    folders = [root / name for name in ("migrations", "tools", "benchmarks")]

    assert [long_files(folder) for folder in folders] == [{}, {}, {}]
    assert [long_functions(folder) for folder in folders[1:]] == [{}, {}]


def test_the_front_door_is_small(package: Path) -> None:
    methods = front_door(package / "manager.py")

    assert 0 < len(methods) <= FACADE_METHODS_MAX
    assert {name: lines for name, lines in methods.items() if lines > FACADE_BODY_LINES_MAX} == {}


def test_no_file_has_a_name_that_says_nothing(package: Path) -> None:
    names = {path.stem.strip("_") for path in package.rglob("*.py")}

    assert names & NAMES_THAT_SAY_NOTHING == set()


@pytest.mark.parametrize(("lines", "found"), [(400, {}), (401, {"long.py": 401})])
def test_a_file_is_counted_to_the_line(
    written: Callable[[str, str], Path], lines: int, found: dict[str, int]
) -> None:
    path = written("long.py", "x = 1\n" * lines)

    assert long_files(path.parent) == found


@pytest.mark.parametrize(("lines", "found"), [(60, {}), (61, {"long.py:grown": 61})])
def test_a_function_is_counted_with_its_decorators(
    written: Callable[[str, str], Path], lines: int, found: dict[str, int]
) -> None:
    path = written("long.py", "@cache\nasync def grown():\n" + "    x = 1\n" * (lines - 2))

    assert long_functions(path.parent) == found


def test_the_front_door_is_counted_without_constructors_and_docstrings(
    written: Callable[[str, str], Path],
) -> None:
    path = written(
        "manager.py",
        "class MemoryManager:\n"
        "    def open(cls):\n        return cls()\n"
        "    def _hidden(self):\n        return 1\n"
        '    def recall(self):\n        """Found.\n\n        More.\n        """\n'
        "        x = 1\n\n        return x\n",
    )

    assert front_door(path) == {"recall": 3}
