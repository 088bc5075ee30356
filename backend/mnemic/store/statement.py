"""Statements: SQL with named values, rendered once for the driver.

The SQL is the product, so it is written as SQL. A `Statement` is a module constant; the store runs
it, the plan test explains it, and one test prepares every one of them on the real schema. Values
are always bound, never formatted in.
"""

from __future__ import annotations

import re
from functools import cached_property
from importlib import resources

from mnemic.store import _scoping
from mnemic.store.past import past_template

__all__ = ["Statement", "every_statement", "statement_file", "statement_text"]

_NAME = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_PREDICATE = re.compile(r"\{(owned|keyed|tenant):([a-z_]+)\}")
_every: list[Statement] = []


class Statement:
    """One SQL statement; `:name` binds a value.

    `{owned:t}`, `{keyed:t}` and `{tenant:t}` are the first wall.
    One that is made for a single call, since a filter gave it its shape, is not `kept`.
    """

    def __init__(self, template: str, *, kept: bool = True) -> None:
        self.template = template
        if kept:
            _every.append(self)

    @cached_property
    def _rendered(self) -> tuple[str, tuple[str, ...]]:
        names: list[str] = []

        def predicate(match: re.Match[str]) -> str:
            return _scoping.predicate(match[1], match[2])

        def place(match: re.Match[str]) -> str:
            if match[1] not in names:
                names.append(match[1])
            return f"${names.index(match[1]) + 1}"

        sql = _NAME.sub(place, _PREDICATE.sub(predicate, self.template))
        return sql.strip(), tuple(names)

    @property
    def sql(self) -> str:
        """The text as the driver takes it, its values at `$1`, `$2` and so on."""
        return self._rendered[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values, in the order of their places."""
        return self._rendered[1]

    @cached_property
    def past(self) -> Statement:
        """The same over the tables as they were, and live what was; it binds `known_at` too."""
        return self._of_the_past(timed=False)

    @cached_property
    def past_true(self) -> Statement:
        """The same, but live what was true at another time; it binds `true_at` too."""
        return self._of_the_past(timed=True)

    def _of_the_past(self, *, timed: bool) -> Statement:
        made = Statement.__new__(Statement)
        made.template = past_template(self.template, timed=timed)
        return made

    def arguments(self, values: dict[str, object]) -> list[object]:
        """The values in their places; a missing one is a `KeyError`, one too many is ignored."""
        return [values[name] for name in self.names]


def statement_text(name: str) -> str:
    """The text of `store/sql/<name>.sql` without its comments."""
    text = (resources.files("mnemic.store") / "sql" / f"{name}.sql").read_text("utf-8")
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))


def statement_file(name: str) -> Statement:
    """The statement kept in `store/sql/<name>.sql`: those too long for Python."""
    return Statement(statement_text(name))


def every_statement() -> tuple[Statement, ...]:
    """All statements of the modules imported so far."""
    return tuple(_every)
