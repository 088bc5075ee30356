"""What a Thinker is given, and what it must be able to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mnemic.model.episode import EpisodeDraft, Outcome
from mnemic.model.turn import Turn, TurnCreate

__all__ = ["SessionRecord", "Thinker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A finished session: what was said, in order, and what working memory knew of it.

    `task` says what was to be done and `status` how far it came ("done", "failed", "blocked", …);
    `scratchpad` holds notes in order; `tools` and `agents` are those known to have taken part
    beside what the turns show. `outcome_hint` is the caller's own verdict.
    """

    turns: tuple[Turn | TurnCreate, ...] = ()
    task: str | None = None
    status: str | None = None
    scratchpad: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    tokens_used: int | None = None
    outcome_hint: Outcome | None = None


class Thinker(Protocol):
    """Makes memories of a session. It is called with no transaction open and may take its time."""

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        """The session as an episode.

        Raises `InvalidInput` when there is nothing to tell: no turn, task or note.
        """
        ...
