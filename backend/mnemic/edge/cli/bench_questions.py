"""Conversations with questions, in the form of the LoCoMo data set: `qa` beside what was said."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemic.errors import InvalidInput
from mnemic.model.transcript import Bounds, Entry, Format, Utterance, read

__all__ = ["Conversation", "Place", "Question", "read_conversations", "speakers"]

Place = tuple[str, int]
"""Where a turn stands: the name of its session, and its position there from 0."""

CATEGORIES = ("multi-hop", "temporal", "open-domain", "single-hop", "adversarial")
"""The categories 1 to 5; the last asks what was never said, or asks it of the wrong person."""
FILES_MAX = 1_000
# A few ids are joined by ";" or blanks, and a few name no turn.
_TURN_ID = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, with the places of the turns that answer it."""

    text: str
    category: int
    evidence: frozenset[Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What was said, and what is asked about it; `skipped` questions name no turn that exists."""

    name: str
    entries: tuple[Entry, ...]
    turns: dict[Place, Utterance]
    questions: tuple[Question, ...]
    skipped: int


def speakers(conversation: Conversation) -> tuple[str, ...]:
    """Who speaks, in the order in which they first do."""
    return tuple(dict.fromkeys(one.turn.actor for one in conversation.turns.values()))


def read_conversations(folder: Path, *, bounds: Bounds) -> Iterator[Conversation]:
    """The conversations of a folder of JSON files, or of one file, in the order of their names.

    Raises `InvalidInput` that names the file, and the question, that cannot be read.
    """
    files = sorted(folder.glob("*.json")) if folder.is_dir() else [folder]
    if not files:
        raise InvalidInput(f"{folder} holds no .json file; name a folder that does", field="--data")
    if len(files) > FILES_MAX:
        raise InvalidInput(f"{folder} holds more than {FILES_MAX} files", field="--data")
    for file in files:
        try:
            yield _conversation(file, bounds)
        except OSError as fault:
            raise InvalidInput(
                f"{file} cannot be read: {fault.strerror or fault}", field="--data"
            ) from None


def _conversation(file: Path, bounds: Bounds) -> Conversation:
    with file.open("rb") as stream:
        entries = tuple(read(stream, format=Format.LOCOMO, name=file.stem, bounds=bounds))
    turns: dict[Place, Utterance] = {}
    ids: dict[str, Place] = {}
    counts: Counter[str] = Counter()
    for entry in entries:
        if isinstance(entry, Utterance):
            place = (entry.session, counts[entry.session])
            counts[entry.session] += 1
            turns[place] = entry
            ids[str(entry.turn.external_id)] = place
    if not turns:
        raise InvalidInput(f"{file} holds no turn in LoCoMo's form", field="--data")
    asked = [_question(file, number, one, ids) for number, one in enumerate(_asked(file), start=1)]
    questions = tuple(one for one in asked if one.evidence)
    return Conversation(
        name=file.stem,
        entries=entries,
        turns=turns,
        questions=questions,
        skipped=len(asked) - len(questions),
    )


def _asked(file: Path) -> list[Any]:
    try:
        document = json.loads(file.read_bytes())
    except ValueError as fault:
        raise InvalidInput(f"{file} is not JSON: {fault}", field="--data") from None
    asked = document.get("qa") if isinstance(document, dict) else None
    if not isinstance(asked, list):
        raise InvalidInput(
            f"{file} must be one object with a list `qa` of questions", field="--data"
        )
    return asked


def _question(file: Path, number: int, value: Any, ids: dict[str, Place]) -> Question:
    try:
        text, category, evidence = value["question"], value["category"], value["evidence"]
        named = _TURN_ID.findall(" ".join(evidence))
        if isinstance(text, str) and category in range(1, len(CATEGORIES) + 1):
            found = frozenset(ids[one] for one in named if one in ids)
            return Question(text=text, category=category, evidence=found)
    except (KeyError, TypeError):
        pass
    raise InvalidInput(
        f"{file}: question {number} must hold question, evidence (a list of ids of turns) and "
        f"category (1 to {len(CATEGORIES)})",
        field="--data",
    )
