"""Reads transcripts: Mnemic's own NDJSON, LoCoMo JSON and plain text; standard library only."""

from mnemic.model.transcript.entry import (
    BadLine,
    Bounds,
    Entry,
    Format,
    SessionInfo,
    StatedFact,
    Utterance,
)
from mnemic.model.transcript.reading import detect, read

__all__ = [
    "BadLine",
    "Bounds",
    "Entry",
    "Format",
    "SessionInfo",
    "StatedFact",
    "Utterance",
    "detect",
    "read",
]
