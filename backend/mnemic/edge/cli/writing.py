"""What goes to the terminal: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

from rich.console import Console
from rich.text import Text

__all__ = [
    "clipped",
    "counted",
    "is_terminal",
    "printable",
    "result_console",
    "side_console",
    "write_json",
    "write_line",
    "write_side",
]

# Controls, bidirectional overrides and lone surrogates: a memory must not steer the terminal.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SPACES = re.compile(r"\s+")


def printable(text: object) -> str:
    r"""The text with what would steer a terminal written out (`\x1b`); lines and tabs stay."""
    return _UNPRINTABLE.sub(_escaped, str(text))


def counted(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`, `0 turns`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clipped(text: str, chars_max: int) -> str:
    """The text on one line of at most `chars_max` characters, printable."""
    line = printable(_SPACES.sub(" ", text).strip())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1].rstrip()}…"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - one byte


def is_terminal(stream: TextIO) -> bool:
    """Whether a person watches."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def result_console() -> Console:
    """Standard output, without any markup or highlighting of what is printed."""
    return Console(file=sys.stdout, markup=False, highlight=False, emoji=False)


def side_console() -> Console:
    """Standard error, as `result_console`."""
    return Console(file=sys.stderr, markup=False, highlight=False, emoji=False)


def write_line(text: str = "", *, style: str | None = None) -> None:
    """A line of the result; on a terminal it may be coloured."""
    _write(result_console(), text, style)


def write_side(text: str, *, style: str | None = None) -> None:
    """A line beside the result, on standard error."""
    _write(side_console(), text, style)


def _write(console: Console, text: str, style: str | None) -> None:
    if console.is_terminal:
        # The terminal wraps by itself, and then a path or a command can be copied whole.
        console.print(Text(printable(text), style=style or ""), soft_wrap=True)
    else:
        console.file.write(f"{printable(text)}\n")


def write_json(document: object) -> None:
    r"""One JSON document on standard output, always in UTF-8; a lone surrogate is `\udc80`."""
    indent = 2 if is_terminal(sys.stdout) else None
    text = json.dumps(document, ensure_ascii=False, indent=indent, default=_json)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def _json(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (UUID, Path)):
        return str(value)
    raise TypeError(type(value).__name__)
