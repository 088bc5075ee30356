"""Make the vectors that are due: of what was kept without, or is not what it was made of."""

from __future__ import annotations

import asyncio
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

SECONDS_MAX = 5.0
log = structlog.get_logger("mnemic")


async def embed_turns_of(
    tools: Tools, tenant: TenantId, sessions: Sequence[UUID], *, most: int
) -> None:
    """Up to `most` turns of the sessions that had no vector, and may take in others, have one.

    The caller waits, after what he asked for has landed: so it is tried once, for as long as
    `SECONDS_MAX`, and what is away meanwhile leaves it to the worker.
    """
    limit = min(most, tools.settings.maintenance.batch_max)
    try:
        async with asyncio.timeout(SECONDS_MAX):
            pending = await tools.transact(
                tenant, lambda unit: unit.vectors.missing_of(sessions, limit=limit), read_only=True
            )
            if pending:  # a host's embedder need not know what to do with no texts
                made = await _made(tools, pending)
                await keep_vectors(tools, tenant, list(zip(pending, made, strict=True)))
    except (MnemicError, TimeoutError) as fault:
        reason = fault.code if isinstance(fault, MnemicError) else "timeout"
        log.warning("turns_not_embedded", sessions=len(sessions), reason=reason)


async def keep_vectors(
    tools: Tools, tenant: TenantId, pairs: Sequence[tuple[PendingText, Vector]]
) -> None:
    """The memories that still say what was embedded have their vectors."""
    if not pairs:
        return
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
