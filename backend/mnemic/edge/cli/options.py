"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["FilterOption", "JsonOption", "MemoryType"]

JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, errors too.")
]
FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter", metavar="JSON", help='Only what passes, for example {"outcome": "success"}.'
    ),
]


class MemoryType(StrEnum):
    """The tiers of long-term memory."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"
