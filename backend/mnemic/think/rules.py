"""The Thinker that needs no model: documented rules, the same bytes for the same session."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from mnemic.errors import InvalidInput
from mnemic.model.episode import EpisodeDraft
from mnemic.model.fact import FactCreate
from mnemic.model.normalise import is_blank
from mnemic.think.extraction import extract_facts
from mnemic.think.protocol import SessionRecord
from mnemic.think.said import Weights, said_in
from mnemic.think.summaries import opening_of, summary_of
from mnemic.think.titles import title_of
from mnemic.think.topics import topics_of
from mnemic.think.verdicts import (
    agents_of,
    importance_of,
    intents_of,
    lessons_of,
    outcome_of,
    tools_of,
)

__all__ = ["RulesThinker", "draft_of"]


class RulesThinker:
    """Tells a session in its own sentences; nothing is invented, no model is asked."""

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        """See `draft_of`; computed on a thread, so that a long session stops nobody."""
        return await asyncio.to_thread(draft_of, session)

    def extract_facts(
        self, text: str, *, actor: str, occurred_at: datetime
    ) -> Sequence[FactCreate]:
        """See `extraction.extract_facts`."""
        return extract_facts(text, actor=actor, occurred_at=occurred_at)


def draft_of(session: SessionRecord) -> EpisodeDraft:
    """The session as an episode, in time linear in its length.

    A title of 5 to 10 words, a summary of 2 or 3 sentences, 3 to 7 topics where so many things are
    named (a tiny session has fewer), and what `verdicts` tells. Raises `InvalidInput` when there
    is no turn, task or note with anything in it.
    """
    texts = (*(turn.text for turn in session.turns), *session.scratchpad, session.task or "")
    if all(map(is_blank, texts)):
        raise InvalidInput("the session holds nothing to tell; end it without one", field="turns")
    said = said_in(session)
    weights = Weights(said)
    opening = opening_of(said, weights)
    topics = topics_of(said)
    outcome = outcome_of(session, said)
    return EpisodeDraft(
        title=title_of(session, opening.text if opening else "", topics),
        summary=summary_of(session, said, weights),
        key_topics=topics,
        user_intents=intents_of(session, said),
        tools_used=tools_of(session),
        agents_used=agents_of(session),
        outcome=outcome,
        importance_score=importance_of(session, said, outcome),
        lessons_learned=lessons_of(said),
    )
