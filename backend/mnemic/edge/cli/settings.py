"""`mnemic settings`."""

from __future__ import annotations

import sys
from typing import Any

from mnemic.edge.cli.options import JsonOption
from mnemic.edge.cli.writing import (
    is_terminal,
    printable,
    result_console,
    write_json,
    write_line,
    write_side,
)

__all__ = ["show_settings"]


def show_settings(*, as_json: JsonOption = False) -> None:
    """Show every setting, its value, and where it came from. Secrets are masked."""
    from mnemic.settings import variable_of
    from mnemic.settings_reading import origins, read_settings, unknown_variables

    values = read_settings(warns=False).effective()
    came_from = origins()
    unknown = unknown_variables()
    if as_json:
        write_json(
            {
                "settings": [
                    {
                        "name": name,
                        "value": value,
                        "origin": came_from[name],
                        "variable": variable_of(name),
                    }
                    for name, value in values.items()
                ],
                "unknown_variables": list(unknown),
            }
        )
        return
    _show([(name, _shown(value), came_from[name]) for name, value in values.items()])
    for name, meant in unknown.items():
        hint = f"; did you mean {meant}?" if meant else ""
        write_side(f"{name} is set but is no setting{hint}")


def _show(rows: list[tuple[str, str, str]]) -> None:
    if not is_terminal(sys.stdout):
        for row in rows:
            write_line("\t".join(row))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("setting", "value", "from"):
        table.add_column(title, overflow="fold")
    for name, value, origin in rows:
        style = "dim" if origin == "default" else ""
        table.add_row(*(Text(printable(cell), style=style) for cell in (name, value, origin)))
    result_console().print(table)


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return str(value).lower() if isinstance(value, bool) else str(value)
