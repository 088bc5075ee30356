"""Append what was said to a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import uuid5

from mnemic.errors import Conflict
from mnemic.model.embedding import Vector
from mnemic.model.receipt import Durability, Receipt, VectorState
from mnemic.model.scope import Scope
from mnemic.model.turn import TurnCreate, TurnId
from mnemic.model.turn_vector import Said, joined, said_in_order
from mnemic.service.count_terms import count_terms_now
from mnemic.service.embed_due import embed_turns_of
from mnemic.service.parsing import (
    changes,
    checked_idempotency_key,
    checked_list,
    checked_turn,
    session_scope,
)
from mnemic.service.tools import Tools
from mnemic.service.witness import Write, answered, claimed, request_digest
from mnemic.store.guards import AuditEntry
from mnemic.store.turns import content_digest, external_digest, turn_marks
from mnemic.store.unit import Unit

__all__ = ["append_turns"]

_Batch = list[tuple[TurnId, TurnCreate]]
_Made = dict[tuple[str, ...], Vector]
"""Vectors by the texts that they are made of."""


async def append_turns(
    tools: Tools, turns: Sequence[TurnCreate], *, scope: Scope, key: str | None = None
) -> list[Receipt]:
    """The turns stand in the session of `scope`, in order after what is there; one receipt each.

    A turn whose `external_id` the session holds already is not added again (`created` is false),
    nor one that was forgotten here (`refused`). The others are added, all or none. A session that
    was not started is started. Raises `InvalidInput`, and `Conflict` if the session has ended and
    something new would be added, or if an `external_id` comes with another text. The same
    idempotency key with the same turns gives the first receipts again.
    """
    checked = _checked(tools, turns, scope)
    name = checked_idempotency_key(key)
    if not checked:
        return []

    async def look(unit: Unit) -> tuple[dict[bytes, bytes], set[bytes], tuple[Said, ...]]:
        return (*await _standing(unit, scope, checked), await unit.turns.last_said(scope))

    known, refused, before = await tools.transact(scope.tenant.id, look, read_only=True)
    batch = [
        (identity, turn)
        for identity, turn in _unknown(tools, scope, checked, known)
        if refused.isdisjoint(turn_marks(scope.id, turn))
    ]
    vectors = await _embedded(tools, said_in_order(before, _said(batch)))
    write = Write(operation="session.append", request=_request(checked), key=name)
    landed = await _land(tools, scope, checked, batch, vectors, write)
    if vectors and any(one.vector is VectorState.PENDING for one in landed):
        # Before them stands something else than was thought to. The receipts stay as they are kept.
        most = tools.settings.maintenance.batch_max
        await embed_turns_of(tools, scope.tenant.id, [scope.id], most=most)
    receipts = [
        replace(receipt, notes=changes(given, kept))
        for receipt, given, kept in zip(landed, turns, checked, strict=True)
    ]
    written = sum(receipt.created for receipt in receipts)
    await count_terms_now(tools, scope.tenant.id, written=written)
    return receipts


def _request(turns: Sequence[TurnCreate]) -> bytes:
    said = [(turn.actor, turn.role, turn.text, turn.caption, turn.external_id) for turn in turns]
    return request_digest("session.append", said)


def _checked(tools: Tools, turns: Sequence[TurnCreate], scope: Scope) -> list[TurnCreate]:
    limits = tools.settings.limits
    session_scope(scope)
    given = checked_list(turns, field="turns", items_max=limits.batch_max)
    return [checked_turn(turn, limits) for turn in given]


async def _land(
    tools: Tools,
    scope: Scope,
    turns: Sequence[TurnCreate],
    batch: _Batch,
    vectors: _Made,
    write: Write,
) -> list[Receipt]:
    """The batch is added and witnessed in one transaction; a receipt for each of `turns`."""
    model = await tools.live_model() if vectors else None
    now = tools.now()

    async def land(unit: Unit) -> list[Receipt]:
        await unit.scopes.ensure(scope)
        if (answer := await claimed(unit, scope, write, now=now)) is not None:
            return [Receipt.from_json(one) for one in answer]
        missing = await _missing(unit, scope, batch, now)
        added = {identity for identity, _ in missing}
        ready: dict[TurnId, Vector] = {}
        if missing:
            before = await _add(unit, scope, missing, now)
            ready = _ready(missing, before, vectors)
            entry = AuditEntry(
                id=tools.new_id(),
                action=write.operation,
                subject_kind="session",
                subject_id=scope.id,
                content_digest=write.request,
            )
            await unit.guards.audit(scope, entry, now=now)
        if ready and model:
            await unit.vectors.put("turn", list(ready.items()), model=model.id)
        _, refused = await _standing(unit, scope, turns)
        receipts = [
            _receipt(
                identity, created=identity in added, ready=identity in ready, refused=is_refused
            )
            for identity, is_refused in _identified(scope, turns, batch, refused, added)
        ]
        await answered(unit, scope, write, [receipt.to_json() for receipt in receipts])
        return receipts

    return await tools.transact(scope.tenant.id, land)


async def _missing(unit: Unit, scope: Scope, batch: _Batch, now: datetime) -> _Batch:
    """What is still to be added, now that the session's row is held against other writers."""
    if not batch:
        return []
    await unit.sessions.start(scope, at=min(turn.occurred_at for _, turn in batch), now=now)
    present, gone = await _standing(unit, scope, [turn for _, turn in batch])
    return [
        (identity, turn)
        for identity, turn in batch
        if (turn.external_id is None or external_digest(turn.external_id) not in present)
        and gone.isdisjoint(turn_marks(scope.id, turn))
    ]


async def _add(unit: Unit, scope: Scope, missing: _Batch, now: datetime) -> tuple[Said, ...]:
    """The turns stand in the session; what was said right before them."""
    first, before = await unit.sessions.take_places(
        scope,
        count=len(missing),
        first_at=min(turn.occurred_at for _, turn in missing),
        now=now,
    )
    await unit.turns.add(scope, missing, first_seq=first, now=now)
    return before


async def _standing(
    unit: Unit, scope: Scope, turns: Sequence[TurnCreate]
) -> tuple[dict[bytes, bytes], set[bytes]]:
    """Which of the turns the session holds by their ids, and which were forgotten here."""
    marks = [mark for turn in turns for mark in turn_marks(scope.id, turn)]
    return await _known(unit, scope, turns), await unit.tombstones.refused(scope, marks)


async def _known(unit: Unit, scope: Scope, turns: Sequence[TurnCreate]) -> dict[bytes, bytes]:
    digests = [external_digest(turn.external_id) for turn in turns if turn.external_id is not None]
    return await unit.turns.known_external(scope, digests) if digests else {}


def _unknown(
    tools: Tools, scope: Scope, turns: Sequence[TurnCreate], known: dict[bytes, bytes]
) -> _Batch:
    """The turns that are to be added. Raises `Conflict` if an id stands for two texts."""
    batch: _Batch = []
    seen = dict(known)
    for turn in turns:
        if turn.external_id is None:
            batch.append((TurnId(tools.new_id()), turn))
            continue
        mark, said = external_digest(turn.external_id), content_digest(turn)
        if mark not in seen:
            batch.append((_external_turn_id(scope, turn.external_id), turn))
        if seen.setdefault(mark, said) != said:
            raise Conflict(
                f"The turn {turn.external_id!r} is kept with another text; give the new text an "
                "id of its own.",
                external_id=turn.external_id,
            )
    return batch


def _external_turn_id(scope: Scope, external_id: str) -> TurnId:
    return TurnId(uuid5(scope.id, f"turn;{external_id}"))


def _said(batch: _Batch) -> list[Said]:
    return [Said(turn.actor, turn.text, turn.caption) for _, turn in batch]


async def _embedded(tools: Tools, wanted: Sequence[tuple[str, ...]]) -> _Made:
    """The vector of each of the turns, of whose texts each is embedded once.

    There are none while the embedder is away.
    """
    texts = list(dict.fromkeys(text for one in wanted for text in one))
    vectors = await tools.vectors(texts)
    if vectors is None:
        return {}
    made = dict(zip(texts, vectors, strict=True))
    return {one: joined([made[text] for text in one]) for one in wanted}


def _ready(missing: _Batch, before: Sequence[Said], vectors: _Made) -> dict[TurnId, Vector]:
    """The vectors of those turns before which stands what was thought to.

    Behind one that came between, or one that is gone, they are embedded anew.
    """
    wanted = said_in_order(before, _said(missing))
    return {
        identity: vectors[one]
        for (identity, _), one in zip(missing, wanted, strict=True)
        if one in vectors
    }


def _identified(
    scope: Scope,
    turns: Sequence[TurnCreate],
    batch: _Batch,
    refused: set[bytes],
    added: set[TurnId],
) -> Iterator[tuple[TurnId, bool]]:
    """The id of each turn given and whether it is refused, in order.

    Of two with one id only the first counts as added.
    """
    fresh = iter([identity for identity, turn in batch if turn.external_id is None])
    named: set[TurnId] = set()
    for turn in turns:
        marks = turn_marks(scope.id, turn)
        is_refused = not refused.isdisjoint(marks)
        if turn.external_id is not None:
            identity = _external_turn_id(scope, turn.external_id)
        elif is_refused:
            identity = TurnId(uuid5(scope.id, f"forgotten;{marks[0].hex()}"))
        else:
            identity = next(fresh)
        if identity in named:
            added.discard(identity)
        named.add(identity)
        yield identity, is_refused


def _receipt(identity: TurnId, *, created: bool, ready: bool, refused: bool) -> Receipt:
    state = VectorState.READY if ready else VectorState.PENDING
    return Receipt(
        id=identity,
        kind="turn",
        version=1,
        durability=Durability.COMMITTED,
        vector=state if created else VectorState.NONE,
        created=created,
        refused=refused,
    )
