"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["JsonOption", "MemoryType"]

JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, errors too.")
]


class MemoryType(StrEnum):
    """The tiers of long-term memory."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"
