"""What a host may ask of its own Thinker holds for the rules, and fails for broken ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from mnemic import FactCreate, InvalidInput, Outcome, SessionRecord, Thinker
from mnemic.model.episode import EpisodeDraft
from mnemic.testing import thinker_contract as contract
from mnemic.testing.thinker_contract import THINKER_CONTRACT, ThinkerSubject
from mnemic.think import RulesThinker

Check = Callable[[ThinkerSubject], Awaitable[None]]


@pytest.mark.parametrize("check", THINKER_CONTRACT, ids=lambda check: check.__name__)
async def test_the_contract_holds(check: Check) -> None:
    await check(ThinkerSubject(RulesThinker))


class Excited(RulesThinker):
    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        return replace(await super().summarise(session), importance_score=7.0)


class Opinionated(RulesThinker):
    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        return replace(await super().summarise(session), outcome=Outcome.SUCCESS)


class Inventive(RulesThinker):
    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        try:
            return await super().summarise(session)
        except InvalidInput:
            return await super().summarise(SessionRecord(task="Something happened."))


class Deaf(RulesThinker):
    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        return await super().summarise(replace(session, task=None, scratchpad=()))


class Templated(RulesThinker):
    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        for turn in session.turns:
            turn.text.format()
        return await super().summarise(session)


class Tired(RulesThinker):
    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        draft = await super().summarise(session)
        return replace(draft, summary="" if len(session.turns) > 100 else draft.summary)


class Confused(RulesThinker):
    session = SessionRecord()

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        self.session = session
        await asyncio.sleep(0)
        return await super().summarise(self.session)


class Stuck(RulesThinker):
    def __init__(self) -> None:
        self.free = asyncio.Lock()

    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        await self.free.acquire()
        draft = await super().summarise(session)
        self.free.release()
        return draft


class Sure(RulesThinker):
    def extract_facts(self, text: str, **given: Any) -> Sequence[FactCreate]:
        return [replace(one, confidence=2.0) for one in super().extract_facts(text, **given)]


class Repetitive(RulesThinker):
    def extract_facts(self, text: str, **given: Any) -> Sequence[FactCreate]:
        return [*super().extract_facts(text, **given), *super().extract_facts(text, **given)]


class Fickle(RulesThinker):
    numbers = count()

    def extract_facts(self, text: str, **given: Any) -> Sequence[FactCreate]:
        name = f"thing {next(self.numbers)}"
        return [replace(one, object=name) for one in super().extract_facts(text, **given)]


class Eager(RulesThinker):
    def extract_facts(self, text: str, **_given: Any) -> Sequence[FactCreate]:
        return [FactCreate(subject="User", predicate="said", object=text or "nothing")]


class Slow(RulesThinker):
    def extract_facts(self, text: str, **given: Any) -> Sequence[FactCreate]:
        time.sleep(0.01)
        return super().extract_facts(text, **given)


class Meddling(RulesThinker):
    async def summarise(self, session: SessionRecord) -> EpisodeDraft:
        session.turns[0].metadata.clear()
        return await super().summarise(session)


BROKEN: dict[str, Callable[[], Thinker]] = {
    contract.a_session_becomes_an_episode_that_can_be_kept.__name__: Excited,
    contract.the_callers_verdict_stands.__name__: Opinionated,
    contract.a_session_that_holds_nothing_is_refused.__name__: Inventive,
    contract.a_task_or_a_note_alone_is_told.__name__: Deaf,
    contract.any_text_is_told.__name__: Templated,
    contract.a_long_session_is_told.__name__: Tired,
    contract.sessions_told_at_once_do_not_mix.__name__: Confused,
    contract.a_telling_that_is_cancelled_holds_up_no_other.__name__: Stuck,
    contract.what_is_stated_can_be_kept.__name__: Sure,
    contract.a_statement_is_given_once.__name__: Repetitive,
    contract.the_same_text_states_the_same.__name__: Fickle,
    contract.nothing_is_stated_where_nothing_is.__name__: Eager,
    contract.any_text_is_read_while_a_caller_waits.__name__: Slow,
    contract.the_turns_are_left_as_they_are.__name__: Meddling,
}


@pytest.mark.parametrize("check", THINKER_CONTRACT, ids=lambda check: check.__name__)
async def test_a_thinker_that_breaks_the_contract_is_found(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "PATIENCE_SECONDS", 2.0)
    monkeypatch.setattr(contract, "EXTRACTION_SECONDS_MAX", 0.01)

    with pytest.raises((AssertionError, InvalidInput, KeyError, IndexError, TimeoutError)):
        await check(ThinkerSubject(BROKEN[check.__name__]))
