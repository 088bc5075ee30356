"""Opening memory for one command."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from mnemic.edge.cli.writing import is_terminal, side_console
from mnemic.errors import InvalidInput

if TYPE_CHECKING:
    from mnemic.manager import MemoryManager
    from mnemic.settings import MemorySettings

__all__ = ["id_of", "text_of", "waiting", "with_memory"]

T = TypeVar("T")
DEADLINE_MS = 60_000
STDIN_BYTES_MAX = 16 * 1_048_576


def with_memory(work: Callable[[MemoryManager], Awaitable[T]]) -> T:
    """What `work` gives, done on a memory that is open meanwhile."""
    with waiting("Opening memory"):
        import asyncio

        from mnemic.manager import MemoryManager
        from mnemic.settings_reading import read_settings

    async def opened() -> T:
        memory = MemoryManager.open(_patient(read_settings()))
        with waiting("Opening memory"):
            await memory.start()
        try:
            return await work(memory)
        finally:
            await memory.close()

    return asyncio.run(opened())


def _patient(settings: MemorySettings) -> MemorySettings:
    """The settings, with time for a model that must be loaded first.

    The deadline of a prompt section is there for an agent's turn, and its process has the model
    at hand; a person waits for an answer rather than for none. What was set stays.
    """
    from mnemic.settings_reading import origins

    if origins()["context.deadline_ms"] != "default":
        return settings
    patient = settings.context.model_copy(update={"deadline_ms": DEADLINE_MS})
    return settings.model_copy(update={"context": patient})


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """A spinner on standard error for as long as the block runs, if a person watches."""
    if not is_terminal(sys.stderr):
        yield
        return
    with side_console().status(f"{words} …"):
        yield


def text_of(given: str, *, field: str) -> str:
    """The text of an argument; `-` stands for standard input. Raises `InvalidInput`."""
    if given != "-":
        return given
    raw = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1)
    if len(raw) > STDIN_BYTES_MAX:
        raise InvalidInput(f"is longer than {STDIN_BYTES_MAX} bytes; split it", field=field)
    try:
        return raw.decode().removesuffix("\n")
    except UnicodeDecodeError as fault:
        raise InvalidInput(
            f"byte {fault.start + 1} of the standard input is not UTF-8; save it as UTF-8",
            field=field,
        ) from None


def id_of(given: str, *, field: str) -> UUID:
    """The id that an argument names. Raises `InvalidInput`."""
    try:
        return UUID(given)
    except ValueError:
        raise InvalidInput(f"{given!r} is not the id of a memory", field=field) from None
