"""What a caller gives to be ingested, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, cast

from mnemic.errors import InvalidInput
from mnemic.model.normalise import clean_text
from mnemic.model.scope import Scope
from mnemic.model.transcript import Entry, SessionInfo, StatedFact, Utterance
from mnemic.service.parsing import KEY_CHARS_MAX, checked_outcome

__all__ = ["FACT_KEY", "Progress", "check_names", "checked_entries", "checked_progress"]

FACT_KEY = "ingest;"
Progress = Callable[[Literal["turn", "fact", "session"], int], None]
"""Told how many turns or facts were just dealt with, or that one session was."""


def checked_entries(entries: object) -> Iterable[Entry]:
    """The entries. Raises `InvalidInput` for what is no list of them."""
    if isinstance(entries, (str, bytes)) or not isinstance(entries, Iterable):
        raise InvalidInput(
            f"must be entries, as transcript.read gives them, not {type(entries).__name__}",
            field="entries",
        )
    return entries


def checked_progress(progress: object) -> Progress:
    """What is told of the progress, or nobody. Raises `InvalidInput` if it cannot be called."""
    if progress is None:
        return _silent
    if not callable(progress):
        raise InvalidInput("must be a function of a kind and a count", field="progress")
    return cast("Progress", progress)


def check_names(entry: Utterance | StatedFact | SessionInfo) -> None:
    """What an entry is filed under can be held. Raises `InvalidInput`."""
    name = entry.name if isinstance(entry, SessionInfo) else entry.session
    # As the scopes that they are to name; a fact may stand in no session.
    somewhere = Scope.user("anybody")
    if entry.project is not None:
        somewhere = somewhere.project(entry.project)
    if name is not None or not isinstance(entry, StatedFact):
        somewhere.session(cast("str", name))
    if isinstance(entry, SessionInfo):
        checked_outcome(entry.outcome)
    elif isinstance(entry, StatedFact):
        longest = KEY_CHARS_MAX - len(FACT_KEY)
        clean_text(entry.external_id, field="external_id", chars_max=longest)


def _silent(_kind: str, _count: int) -> None:
    """Nobody watches."""
