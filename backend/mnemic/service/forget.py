"""Delete memories by their exact ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from mnemic.errors import Conflict, NotFound
from mnemic.model.episode import Episode
from mnemic.model.normalise import clean_text
from mnemic.model.scope import Scope
from mnemic.model.turn_vector import TURNS_BEFORE_MAX
from mnemic.service.embed_due import embed_turns_of
from mnemic.service.parsing import (
    REASON_CHARS_MAX,
    checked_idempotency_key,
    checked_ids,
    checked_scope,
)
from mnemic.service.reword_episode import Rewording, StatementKey, land_rewording, reword
from mnemic.service.rights import require_write, scope_in_chain
from mnemic.service.tools import Tools
from mnemic.service.witness import Write, answered, claimed, request_digest
from mnemic.store.guards import AuditEntry
from mnemic.store.lineage import RestingFact
from mnemic.store.unit import Unit

__all__ = ["Forgotten", "forget"]


ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How many memories of each kind are gone, vectors and evidence with them.

    Facts that rested on them alone are among them. `reworded` episodes tell anew of a session
    without what was forgotten of it.
    """

    counts: dict[str, int]
    reworded: int = 0

    @property
    def total(self) -> int:
        """All kinds together."""
        return sum(self.counts.values())


class _MustReword(Exception):
    """Episodes tell of turns that are to go, and their new words are not known, or not any more."""

    def __init__(self, episodes: Sequence[Episode]) -> None:
        super().__init__()
        self.episodes = episodes


async def forget(
    tools: Tools,
    ids: Sequence[UUID],
    *,
    scope: Scope,
    reason: str | None = None,
    key: str | None = None,
) -> Forgotten:
    """The memories of exactly these ids are gone: all of them, or none.

    What was made of them follows: a fact that rests on them alone is gone, one that rests on others
    too is less sure, and the episode of a session is told anew without the turns. What was
    forgotten is refused when it comes again (digests alone are kept for that), until a caller asks
    for it with `lift=True`. The id of a fact that an ended session left behind stands for the one
    above that says the same.

    The same idempotency key with the same ids gives the first answer again. Raises `NotFound` if
    one is not visible from `scope`, `Forbidden` if one stands in a wider scope without a grant,
    `InvalidInput` for an empty or overlong list, and `ThinkerUnavailable` if an episode is to be
    told anew and the Thinker fails.
    """
    checked_scope(scope)
    wanted = checked_ids(ids, field="ids", items_max=tools.settings.limits.batch_max)
    why = None if reason is None else clean_text(reason, field="reason", chars_max=REASON_CHARS_MAX)
    write = Write(
        operation="memory.forget",
        request=request_digest("forget", sorted(str(one) for one in wanted)),
        key=checked_idempotency_key(key),
        reason=why,
    )
    rewordings: dict[UUID, Rewording] = {}
    for _ in range(ATTEMPTS_MAX):
        try:
            return await _land(tools, scope, wanted, write, rewordings)
        except _MustReword as due:
            for one in due.episodes:
                rewordings[one.id] = await reword(tools, one, scope=scope, without=wanted)
    raise Conflict("Others are forgetting turns of the same session; forget these when it is done.")


async def _land(
    tools: Tools,
    scope: Scope,
    wanted: Sequence[UUID],
    write: Write,
    rewordings: Mapping[UUID, Rewording],
) -> Forgotten:
    now = tools.now()
    touched: list[UUID] = []

    async def land(unit: Unit) -> Forgotten:
        touched.clear()
        await unit.scopes.ensure(scope)
        if (answer := await claimed(unit, scope, write, now=now)) is not None:
            return Forgotten(**answer)
        touched.extend(await unit.lineage.hold_sessions(scope, wanted))
        found = await unit.forgetting.locate(scope, wanted)
        if missing := [one for one in wanted if one not in found]:
            raise NotFound(f"No memory {missing[0]} in this scope.", id=missing[0])
        heirs = await unit.forgetting.live_on(scope, wanted)
        found |= {identity: ("fact", place) for identity, place in heirs.values()}
        goes = list(dict.fromkeys(heirs[one][0] if one in heirs else one for one in wanted))
        turns = [one for one in goes if found[one][0] == "turn"]
        told = await unit.lineage.episodes_of_turns(scope, turns) if turns else []
        told = [one for one in told if one.id not in found]
        counts: Counter[str] = Counter()
        for (noun, place_id), chosen in _grouped(goes, found).items():
            place = await require_write(unit, scope, place_id)
            marks = await unit.forgetting.marks(place, noun, chosen)
            await unit.tombstones.add(place, marks, kind=noun, reason=write.reason, now=now)
            counts[noun] += await unit.forgetting.delete(place, noun, chosen)
        await _check_known(unit, scope, told, rewordings)
        for one in told:
            place = scope_in_chain(scope, one.scope_id)
            await land_rewording(unit, place, one, rewordings[one.id], now=now)
        gone = [one for one in told if rewordings[one.id].episode is None]
        counts += Counter(episode=len(gone))
        anew = [new for one in told if (new := rewordings[one.id].episode) is not None]
        stated: dict[UUID, frozenset[StatementKey]] = {
            one.id: rewordings[one.id].stated for one in anew
        }
        lost = await _resting_on_nothing(unit, found, gone=gone, stated=stated, now=now)
        counts += await _delete_facts(unit, scope, lost)
        subjects = [(found[one][0], one) for one in goes]
        subjects += [("episode", one.id) for one in gone] + [("fact", one.id) for one in lost]
        entries = [
            *(_entry(tools, write, noun, one) for noun, one in subjects),
            *(_entry(tools, write, "episode", one.id, action="episode.reword") for one in anew),
        ]
        await unit.guards.audit(scope, *entries, now=now)
        result = Forgotten(counts=dict(counts), reworded=len(anew))
        await answered(unit, scope, write, asdict(result))
        return result

    result = await tools.transact(scope.tenant.id, land)
    if touched:  # the turns after those that are gone took them in, and wait for another vector
        most = TURNS_BEFORE_MAX * result.counts.get("turn", 0)
        await embed_turns_of(tools, scope.tenant.id, touched, most=most)
    return result


async def _check_known(
    unit: Unit, scope: Scope, told: Sequence[Episode], rewordings: Mapping[UUID, Rewording]
) -> None:
    """The new words of each episode are those of the turns that are left."""
    due = []
    for one in told:
        session = one.session_id
        if session is None:
            raise AssertionError(one)
        left = await unit.turns.count(scope, session=session)
        if one.id not in rewordings or rewordings[one.id].turns != left:
            due.append(one)
    if due:
        raise _MustReword(due)


async def _resting_on_nothing(
    unit: Unit,
    found: Mapping[UUID, tuple[str, UUID]],
    *,
    gone: Sequence[Episode],
    stated: Mapping[UUID, frozenset[StatementKey]],
    now: datetime,
) -> list[RestingFact]:
    """The facts that nothing speaks for now; what is gone or unsaid speaks for none of the others.

    `stated` is what episodes that are told anew still say. The facts may stand in narrower scopes,
    which read what stood here.
    """
    lost: dict[UUID, RestingFact] = {}
    for kind in ("turn", "episode"):
        sources = [one for one, (noun, _) in found.items() if noun == kind]
        sources += [one.id for one in gone if kind == "episode"]
        if sources:
            resting = await unit.lineage.resting_on(kind, sources)
            lost |= await _withdrawn(unit, kind, sources, resting, now)
    for episode, said in stated.items():
        resting = await unit.lineage.resting_on("episode", [episode])
        unsaid = [one for one in resting if one.key not in said]
        lost |= await _withdrawn(unit, "episode", [episode], unsaid, now)
    return list(lost.values())


async def _delete_facts(unit: Unit, scope: Scope, lost: Sequence[RestingFact]) -> Counter[str]:
    """The facts are gone; how many of them could be seen from `scope`."""
    counts: Counter[str] = Counter()
    for place in sorted({one.scope_id for one in lost}):
        ids = sorted(one.id for one in lost if one.scope_id == place)
        landed = await unit.forgetting.delete_resting(place, ids)
        # How many stood in narrower scopes is not to be known here.
        counts["fact"] += landed if place in scope.visible_ids else 0
    return +counts


async def _withdrawn(
    unit: Unit,
    kind: str,
    sources: Sequence[UUID],
    resting: Sequence[RestingFact],
    now: datetime,
) -> dict[UUID, RestingFact]:
    """The sources speak for none of these facts any more; those that nothing speaks for now."""
    others = [one.id for one in resting if one.has_others]
    if others:
        await unit.lineage.withdraw(kind, sources, others, now=now)
    return {one.id: one for one in resting if not one.has_others}


def _entry(
    tools: Tools, write: Write, noun: str, identity: UUID, *, action: str | None = None
) -> AuditEntry:
    return AuditEntry(
        id=tools.new_id(),
        action=action or write.operation,
        subject_kind=noun,
        subject_id=identity,
        reason=write.reason,
    )


def _grouped(
    wanted: Sequence[UUID], found: dict[UUID, tuple[str, UUID]]
) -> dict[tuple[str, UUID], list[UUID]]:
    """The ids by kind and scope, in one order for every caller, so that two never deadlock."""
    groups: dict[tuple[str, UUID], list[UUID]] = {}
    for one in sorted(wanted):
        groups.setdefault(found[one], []).append(one)
    return dict(sorted(groups.items()))
