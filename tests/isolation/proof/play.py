"""A run against one world: each call is made, settled with the oracle, and its answer searched."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from mnemic.model.episode import Episode
from mnemic.model.fact import Fact
from mnemic.model.procedure import Procedure
from mnemic.model.receipt import Receipt
from mnemic.model.scope import MemoryScope, Scope, Tenant
from mnemic.model.turn import Turn
from mnemic.service.ingest import IngestReport
from mnemic.service.maintain import MaintenanceReport
from proof.by_id import BY_ID
from proof.canaries import ids_in, shape_of, tokens_in
from proof.oracle import Oracle
from proof.world import START, Answer, Call, World

__all__ = ["Leak", "Play"]

IDLE_AFTER = timedelta(minutes=30)
STARTING_VERBS = frozenset({"sessions.start", "lifecycle.spawn"})
MOVING_VERBS = frozenset(
    {"sessions.pause", "sessions.resume", "lifecycle.pause", "lifecycle.resume"}
)
PAUSING_VERBS = frozenset({"sessions.pause", "lifecycle.pause"})
ENDING_VERBS = frozenset({"sessions.end", "lifecycle.terminate"})
KEEPING_VERBS = frozenset(
    {
        "remember",
        "store_fact",
        "semantic.store_fact",
        "semantic.extract_facts_from_episode",
        "episodic.record_episode",
        "procedural.record_procedure",
    }
)
_KINDS: dict[type, str] = {Turn: "turn", Episode: "episode", Fact: "fact", Procedure: "procedure"}


class Leak(AssertionError):
    """Somebody was shown, or could conclude, what is not his to know."""


@dataclass(slots=True)
class Play:
    """The calls so far, with their answers."""

    world: World
    oracle: Oracle
    answers: list[Answer] = field(default_factory=list)
    strange_ids: list[tuple[Answer, UUID]] = field(default_factory=list)
    at: datetime = START
    number: int = 0

    def call(
        self, verb: str, scope: Scope | None, values: dict[str, Any], *, blind: bool = False
    ) -> Call:
        """The next call, a second after the one before."""
        self.number += 1
        self.at += timedelta(seconds=1)
        if scope is not None:
            self.oracle.meet(scope)
        return Call(
            number=self.number,
            verb=verb,
            scope=scope,
            at=self.at,
            values=values,
            without_embedder=blind,
        )

    async def make(self, call: Call, upward: Sequence[str] = ()) -> Answer:
        """The answer, if it holds nothing foreign. `upward` are tokens told with an id."""
        [answer] = await self.make_together([call])
        if answer.fault is None and upward:
            self._move_to_memory(answer, upward)
        return answer

    async def make_together(self, calls: Sequence[Call]) -> list[Answer]:
        """The answers of calls of different tenants that run at the same time."""
        answers = await asyncio.gather(*(self.world.run(call) for call in calls))
        for answer in answers:
            self._settle(answer)
        for answer in answers:
            self.answers.append(answer)
            self._search(answer)
        return answers

    async def compare(self, verb: str, scope: Scope, pair: Sequence[dict[str, Any]]) -> None:
        """The two calls, at the same moment, fail alike and tell nothing apart."""
        first = self.call(verb, scope, pair[0])
        self.number += 1
        second = replace(first, number=self.number, values=pair[1])
        answers = [await self.make(first), await self.make(second)]
        if any(answer.fault is None for answer in answers):
            raise Leak(f"an id that is not visible was accepted: {answers}")
        shapes = {shape_of(answer.text) for answer in answers}
        if len(shapes) > 1:
            raise Leak(f"a foreign and an unknown id are told apart: {shapes}")

    def _settle(self, answer: Answer) -> None:
        """The oracle knows what the call has changed."""
        call, oracle = answer.call, self.oracle
        if isinstance(answer.value, MaintenanceReport):
            self._settle_maintenance(answer.value, call)
        if call.scope is None or answer.fault is not None:
            return
        told_of = _told_of(answer.value)
        place = told_of[0].parent if told_of else call.scope
        for identity in self.world.made.pop(call.number, ()):
            oracle.places.setdefault(identity, place or call.scope)
            if call.verb.startswith(("working.", "lifecycle.")):
                oracle.private[identity] = None
        if isinstance(answer.value, IngestReport):
            self._settle_ingest(answer.value, call)
        self._settle_session(answer, call.scope)
        self._keep_items(answer, call.scope)
        if call.verb in ("working.create_checkpoint", "lifecycle.pause"):
            oracle.checkpoints[UUID(answer.value)] = call.scope
        if call.verb == "forget":
            for one in call.values["ids"]:
                oracle.recorded_episodes.pop(one, None)

    def _settle_session(self, answer: Answer, scope: Scope) -> None:
        verb = answer.call.verb
        # Starting a session that is open changes nothing, so it does not count as activity either.
        is_new = verb in STARTING_VERBS and scope not in self.oracle.open_sessions
        has_more = verb == "sessions.append" and any(one.created for one in answer.value)
        keeps = verb in KEEPING_VERBS and answer.value != [] and not self._is_repeated(answer)
        keeps = keeps and scope.level is MemoryScope.SESSION
        if verb in MOVING_VERBS or is_new or has_more or keeps:
            self.oracle.active(scope, answer.call.at)
            if verb in PAUSING_VERBS:
                self.oracle.resting.add(scope)
            elif verb in MOVING_VERBS:
                self.oracle.resting.discard(scope)
        elif verb in ENDING_VERBS:
            self.oracle.end(scope)

    def _is_repeated(self, answer: Answer) -> bool:
        """Whether the call's key has its answer from a call before."""
        return (
            any(
                one.fault is None
                and one.call.scope == answer.call.scope
                and one.call.values.get("idempotency_key") == answer.call.values["idempotency_key"]
                for one in self.answers
            )
            if "idempotency_key" in answer.call.values
            else False
        )

    def _settle_ingest(self, report: IngestReport, call: Call) -> None:
        for session in report.sessions:
            if session.turns_added:
                self.oracle.active(session.scope, call.at)
            self.oracle.meet(session.scope)
            if session.episode_id is not None:
                self.oracle.end(session.scope)
                parent = session.scope.parent or session.scope
                self.oracle.keep("episode", session.episode_id, parent)

    def _settle_maintenance(self, report: MaintenanceReport, call: Call) -> None:
        if report.job != "end_idle_sessions":
            return
        idle = self.oracle.idle(at=call.at, after=IDLE_AFTER)
        if report.done != len(idle) or report.failed:
            raise Leak(f"{len(idle)} sessions were idle, but {report}")
        if report.tenants != len({one.tenant for one in idle}):
            raise Leak(f"sessions of {report.tenants} tenants were looked at: {idle}")
        for session in idle:
            self.oracle.end(session)
            self.oracle.keep("episode", uuid5(session.id, "episode"), session.parent or session)

    def _keep_items(self, answer: Answer, scope: Scope) -> None:
        for kind, identity, scope_id in _items(answer.value):
            place = self.oracle.scopes.get(scope_id, scope) if scope_id else scope
            if answer.call.verb in ENDING_VERBS and scope.parent is not None:
                place = scope.parent
            self.oracle.keep(kind, identity, place)
            if answer.call.verb == "episodic.record_episode":
                self.oracle.recorded_episodes.setdefault(identity)

    def _move_to_memory(self, answer: Answer, upward: Sequence[str]) -> None:
        """What was told with an id stands where the memory stands."""
        places = {self.oracle.places.get(one) for one in ids_in(repr(answer.call.values))}
        for place in places:
            if place is not None:
                for one in upward:
                    self.oracle.places[one] = place

    def _search(self, answer: Answer) -> None:
        """Raises `Leak` for a token or an id that the caller must not see."""
        call, viewer = answer.call, answer.call.scope
        if viewer is None:
            if tokens_in(answer.text) or answer.fault is not None:
                raise Leak(f"an operator's call holds content, or met what is another's: {answer}")
            return
        if answer.fault is not None and answer.fault.__class__.__name__ == "MnemicError":
            raise Leak(f"a fault that nobody foresaw: {answer}")
        # A transcript names the projects that it tells of, and so speaks for those scopes as well.
        viewers = [viewer, *_told_of(answer.value)]
        places = self.oracle.places

        def hidden(what: str | UUID) -> bool:
            return what not in places or not any(self.oracle.may_see(v, what) for v in viewers)

        foreign: list[str | UUID] = [one for one in tokens_in(answer.text) if hidden(one)]
        told = ids_in(repr(call.values)).union(*(one.visible_ids for one in viewers))
        for one in ids_in(answer.text) - told:
            if one not in places:
                self.strange_ids.append((answer, one))
            elif hidden(one):
                foreign.append(one)
        if foreign:
            owners = {str(one): places.get(one) for one in foreign}
            raise Leak(f"{call} shows {owners}: {answer.text}")
        if call.verb == "episodic.get_recent" and call.values.get("since") is None:
            self._complete(answer, viewer)

    def _complete(self, answer: Answer, viewer: Scope) -> None:
        """Every episode that was recorded in the viewer's chain is there."""
        if answer.fault is not None or len(answer.value) >= answer.call.values["limit"]:
            return
        got = {one.id for one in answer.value}
        wanted = self.oracle.recorded_episodes
        lost = [one for one in wanted if self.oracle.may_see(viewer, one) and one not in got]
        if lost:
            raise Leak(f"episodes of the viewer's own chain are missing: {lost}")

    def calls_of(self, tenant: Tenant) -> list[Answer]:
        """The answers of the tenant, and of the operator, in their order."""
        return [
            one for one in self.answers if one.call.scope is None or one.call.scope.tenant == tenant
        ]

    def calls_without(self, branch: Scope) -> list[Answer] | None:
        """The answers of its tenant but for that scope and its sessions.

        Nothing if somebody there changed, as he may, a memory that stands above.
        """
        left = []
        for one in self.calls_of(branch.tenant):
            if one.call.scope is None or branch not in one.call.scope.chain:
                left.append(one)
            elif one.fault is None and one.call.verb in BY_ID:
                ids = ids_in(repr(one.call.values))
                places = [self.oracle.places[known] for known in ids if known in self.oracle.places]
                if any(branch not in place.chain for place in places):
                    return None
        return left


def _told_of(value: Any) -> list[Scope]:
    return [one.scope for one in value.sessions] if isinstance(value, IngestReport) else []


def _items(value: Any) -> list[tuple[str, UUID, UUID | None]]:
    """Kind, id and (if it says so) scope of every memory that the value names."""
    if isinstance(value, Receipt):
        return [(value.kind, one, None) for one in (value.id, *value.also)]
    if kind := _KINDS.get(type(value)):
        return [(kind, value.id, value.scope_id)]
    if isinstance(value, (list, tuple)):
        return [found for one in value for found in _items(one)]
    if is_dataclass(value) and not isinstance(value, (type, Scope)):
        parts = (getattr(value, one.name) for one in fields(value))
        return [found for part in parts for found in _items(part)]
    return []
