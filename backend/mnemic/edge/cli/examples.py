"""The example conversation that ships with the package."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

__all__ = ["CONVERSATION", "example", "questions"]

CONVERSATION = "conversation.ndjson"


def example(name: str) -> Path:
    """A file of the examples: inside the installed package, else beside `backend/`."""
    package = Path(str(files("mnemic")))
    packed = package / "examples"
    return (packed if packed.is_dir() else package.parents[1] / "examples") / name


def questions(count: int) -> list[str]:
    """The first questions that the conversation answers."""
    asked = json.loads(example("questions.json").read_text("utf-8"))
    return [one["question"] for one in asked[:count]]
