"""Options that several commands share."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import typer

from mnemic.errors import InvalidInput

__all__ = ["AsOfOption", "FilterOption", "JsonOption", "KnownAtOption", "MemoryType", "moment_of"]

JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, errors too.")
]
FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter", metavar="JSON", help='Only what passes, for example {"outcome": "success"}.'
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="What was true then: 2026-03-02T09:00:00Z."),
]
KnownAtOption = Annotated[
    str | None, typer.Option("--known-at", metavar="TIME", help="Of what was known then.")
]


def moment_of(as_of: str | None, known_at: str | None) -> dict[str, datetime]:
    """The times that were given, as arguments. Raises `InvalidInput`."""
    found = {}
    for field, text in (("as_of", as_of), ("known_at", known_at)):
        if text is None:
            continue
        try:
            found[field] = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidInput(
                "must be a time with its zone, such as 2026-03-02T09:00:00Z", field=field
            ) from None
    return found


class MemoryType(StrEnum):
    """The tiers of long-term memory."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"
