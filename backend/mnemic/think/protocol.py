"""What a Thinker is given, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from mnemic.model.episode import EpisodeDraft, Outcome
from mnemic.model.fact import FactCreate
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
    """Makes memories of what was said. It is called with no transaction open."""

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        """The session as an episode.

        It may take its time. Raises `InvalidInput` when there is nothing to tell: no turn, task
        or note.
        """
        ...

    def extract_facts(
        self, text: str, *, actor: str, occurred_at: datetime
    ) -> Sequence[FactCreate]:
        """What `actor` states in the text, each once, in order; nothing when nothing is stated.

        A caller waits for the answer, so it is given without asking anybody.
        """
        ...
