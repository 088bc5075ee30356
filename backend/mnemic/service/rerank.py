"""Let a host's own reranker put the best hits in order, and do without it when it fails."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from numbers import Real

import structlog

from mnemic.model.reranker import Reranker

__all__ = ["Ranks", "asked"]

_NO_LISTS = (str, bytes, bytearray, Mapping, AbstractSet)
log = structlog.get_logger("mnemic")


@dataclass(frozen=True, slots=True)
class Ranks:
    """What the reranker gave each text; nothing, and why, where it gave nothing of use."""

    values: tuple[float, ...] = ()
    fault: str | None = None

    def order(self, count: int) -> list[int]:
        """The places of `count` texts, the best first; of equals the one that stood first."""
        if len(self.values) != count:
            return list(range(count))
        return sorted(range(count), key=lambda at: -self.values[at])


async def asked(reranker: Reranker, query: str, texts: Sequence[str], *, timeout_ms: int) -> Ranks:
    """What the reranker says of the texts. Raises nothing, but for being cancelled."""
    try:
        # A tuple of its own: it may do with it what it likes.
        async with asyncio.timeout(timeout_ms / 1_000):
            given = await reranker.rerank(query, tuple(texts))
        return Ranks(_numbers(given, len(texts)))
    except TimeoutError:
        fault = f"no answer within {timeout_ms} ms"
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # we are cancelled, not something that the reranker waited for
        fault = "it was cancelled"
    except _NoNumbersError as refused:
        fault = str(refused)
    except Exception as failure:  # noqa: BLE001 - a host's own reranker fails in its own ways
        # Not in its words, which may quote what it was given.
        fault = type(failure).__name__
    log.warning("rerank_failed", texts=len(texts), reason=fault)
    return Ranks(fault=fault)


class _NoNumbersError(Exception):
    """What was given is no list of finite numbers, one a text."""


def _numbers(given: object, count: int) -> tuple[float, ...]:
    """The numbers, of whichever type. Raises `_NoNumbersError`, or what looking at it raises."""
    if isinstance(given, _NO_LISTS) or not hasattr(given, "__len__"):
        message = f"it gave {type(given).__name__}, not a list of numbers"
        raise _NoNumbersError(message)
    held = list(islice(given, count + 1))  # type: ignore[call-overload]
    if len(held) != count:
        message = f"it gave {len(given)} numbers for {count} texts"
        raise _NoNumbersError(message)
    for one in held:
        if isinstance(one, bool) or not isinstance(one, Real):
            message = f"it gave {type(one).__name__} where a number is wanted"
            raise _NoNumbersError(message)
    values = tuple(map(float, held))
    if not all(map(math.isfinite, values)):
        message = "it gave NaN or a number that is not finite"
        raise _NoNumbersError(message)
    return values
