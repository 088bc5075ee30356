"""Ask the Thinker, and believe nothing of it: whatever it gives is checked as a caller's input is.

A host may plug in its own, which may fail in its own ways. All of them leave here as
`ThinkerUnavailable`, so that one session which it cannot tell holds up no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mnemic.errors import InvalidInput, MnemicError, ThinkerUnavailable
from mnemic.model.episode import EpisodeDraft, Outcome
from mnemic.model.fact import FactCreate
from mnemic.model.normalise import checked_unit, clean_name, clean_text
from mnemic.service.parsing import checked_fact, checked_list
from mnemic.service.tools import Tools
from mnemic.settings import LimitSettings
from mnemic.think import SessionRecord

__all__ = ["read_statements", "summarise"]

ITEMS_MAX = 1_000
TITLE_CHARS_MAX = 1_000


async def summarise(tools: Tools, session: SessionRecord) -> EpisodeDraft:
    """The session as an episode that can be kept.

    Raises `InvalidInput` when there is nothing to tell, and `ThinkerUnavailable` when the Thinker
    fails or gives what cannot be held.
    """
    try:
        draft = await tools.thinker.summarise(session)
    except MnemicError:
        raise
    except Exception as fault:
        raise _failed(fault) from fault
    try:
        return _checked(draft, tools.settings.limits)
    except InvalidInput as fault:
        raise ThinkerUnavailable(f"the Thinker's episode cannot be kept: {fault}") from fault


def read_statements(
    tools: Tools, text: str, *, occurred_at: datetime, actor: str = "User"
) -> Sequence[FactCreate]:
    """What the actor states in the text, at most `ITEMS_MAX` statements that can be kept.

    Raises `ThinkerUnavailable` when the Thinker fails or gives what cannot be held.
    """
    try:
        # A host's own may give a generator, which fails while it is read.
        drafts = list(tools.thinker.extract_facts(text, actor=actor, occurred_at=occurred_at))
    except MnemicError:
        raise
    except Exception as fault:
        raise _failed(fault) from fault
    try:
        checked = checked_list(drafts, field="facts", items_max=ITEMS_MAX)
        return [checked_fact(one, tools.settings.limits) for one in checked]
    except InvalidInput as fault:
        raise ThinkerUnavailable(f"the Thinker's statements cannot be kept: {fault}") from fault


def _failed(fault: Exception) -> ThinkerUnavailable:
    # Not in its words, which may quote what it was given.
    return ThinkerUnavailable(f"the Thinker failed: {type(fault).__name__}")


def _checked(draft: object, limits: LimitSettings) -> EpisodeDraft:
    if not isinstance(draft, EpisodeDraft):
        raise InvalidInput(f"must be an EpisodeDraft, not {type(draft).__name__}", field="draft")
    if not isinstance(draft.outcome, Outcome):
        raise InvalidInput(f"must be an Outcome, not {draft.outcome!r}", field="outcome")
    longest = limits.text_chars_max

    def texts(field: str) -> tuple[str, ...]:
        given = checked_list(getattr(draft, field), field=field, items_max=ITEMS_MAX)
        return tuple(clean_text(one, field=field, chars_max=longest) for one in given)

    return EpisodeDraft(
        title=clean_name(draft.title, field="title", chars_max=TITLE_CHARS_MAX),
        summary=clean_text(draft.summary, field="summary", chars_max=longest),
        key_topics=texts("key_topics"),
        user_intents=texts("user_intents"),
        tools_used=texts("tools_used"),
        agents_used=texts("agents_used"),
        outcome=draft.outcome,
        importance_score=checked_unit(draft.importance_score, field="importance_score"),
        lessons_learned=texts("lessons_learned"),
    )
