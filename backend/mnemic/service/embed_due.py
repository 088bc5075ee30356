"""Make the vectors that are due: of what was kept without, or is not what it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from uuid import UUID

import structlog

from mnemic.errors import EmbedderUnavailable, MnemicError
from mnemic.model.embedding import Vector
from mnemic.model.scope import TenantId
from mnemic.model.turn_vector import joined
from mnemic.service.tools import Tools
from mnemic.store.unit import Unit
from mnemic.store.vectors import PendingText

__all__ = ["embed_turns_of", "embedded", "keep_vectors"]

log = structlog.get_logger("mnemic")


async def embed_turns_of(tools: Tools, tenant: TenantId, sessions: Sequence[UUID]) -> None:
    """Turns of the sessions that had no vector, and may take in others, have one.

    One batch of them, and none while anything is away: what was done before stands all the same,
    and the worker makes them later.
    """
    limit = tools.settings.maintenance.batch_max
    try:
        pending = await tools.transact(
            tenant, lambda unit: unit.vectors.missing_of(sessions, limit=limit), read_only=True
        )
        if pending:
            await keep_vectors(tools, tenant, await embedded(tools, pending))
    except MnemicError as fault:
        log.warning("turns_not_embedded", sessions=len(sessions), reason=fault.code)


async def keep_vectors(
    tools: Tools, tenant: TenantId, pairs: Sequence[tuple[PendingText, Vector]]
) -> None:
    """The memories that still say what was embedded have their vectors."""
    model = await tools.live_model()
    now = tools.now()

    async def land(unit: Unit) -> None:
        for kind in dict.fromkeys(one.kind for one, _ in pairs):
            still = await unit.vectors.still(kind, [one for one, _ in pairs if one.kind == kind])
            found = [(one.id, vector) for one, vector in pairs if one.id in still]
            await unit.vectors.put(kind, found, model=model.id, now=now)

    await tools.transact(tenant, land)


async def embedded(tools: Tools, pending: list[PendingText]) -> list[tuple[PendingText, Vector]]:
    """The texts that the model takes; one that it refuses alone does not hold up its batch.

    Raises `EmbedderUnavailable` if it takes none.
    """
    try:
        vectors = await _made(tools, pending)
    except EmbedderUnavailable:
        if len(pending) == 1:
            raise
    else:
        return list(zip(pending, vectors, strict=True))
    pairs: list[tuple[PendingText, Vector]] = []
    fault: EmbedderUnavailable | None = None
    for one in pending:
        try:
            pairs.append((one, (await _made(tools, [one]))[0]))
        except EmbedderUnavailable as refusal:
            fault = refusal
            if not pairs and one is not pending[0]:
                raise
    if fault is not None:
        log.warning("text_not_embedded", texts=len(pending) - len(pairs), reason=str(fault))
    return pairs


async def _made(tools: Tools, pending: Sequence[PendingText]) -> list[Vector]:
    made = iter(await tools.embed([text for one in pending for text in one.texts]))
    return [joined(list(islice(made, len(one.texts)))) for one in pending]
