"""From Celery's threads to async: one event loop thread and one open manager a process.

Made on first use and keyed by process id, so that no forked child inherits a loop, a pool of
connections or a lock that somebody holds. The same for the prefork, threads and solo pools.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mnemic.manager import MemoryManager

__all__ = ["Bridge"]

T = TypeVar("T")
Job = Callable[[MemoryManager], Awaitable[T]]
CANCEL_SECONDS_MAX = 10.0
CLOSE_SECONDS_MAX = 30.0


class Bridge:
    """Runs coroutines on the loop thread of this process.

    `make_manager` gives a manager that is not open yet; it is called once a process, and again
    after opening has failed.
    """

    def __init__(self, make_manager: Callable[[], MemoryManager]) -> None:
        self._make_manager = make_manager
        self._locks: dict[int, threading.Lock] = {}
        self._homes: dict[int, _Home] = {}

    def run(self, job: Job[T], *, seconds: float) -> T:
        """What `job` gives; `TimeoutError` after `seconds`, in pools without time limits too.

        Whatever is raised meanwhile in the thread that waits, such as a soft time limit, cancels
        the coroutine, and its transaction is rolled back before this returns.
        """
        home = self._home()
        ended = threading.Event()
        future = asyncio.run_coroutine_threadsafe(home.run(job, seconds, ended), home.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            ended.wait(CANCEL_SECONDS_MAX)
            raise

    def close(self) -> None:
        """The manager and the loop of this process are closed; calling it twice is harmless."""
        home = self._homes.pop(os.getpid(), None)
        if home is not None:
            home.close()

    def _home(self) -> _Home:
        pid = os.getpid()
        with self._locks.setdefault(pid, threading.Lock()):
            home = self._homes.get(pid)
            if home is None:
                self._homes[pid] = home = _Home(self._make_manager)
        return home


class _Home:
    """A loop thread, and the manager that is open on it."""

    def __init__(self, make_manager: Callable[[], MemoryManager]) -> None:
        self.loop = asyncio.new_event_loop()
        self._make_manager = make_manager
        self._manager: MemoryManager | None = None
        self._opening = asyncio.Lock()
        self._thread = threading.Thread(target=self._serve, name="mnemic-loop", daemon=True)
        self._thread.start()

    async def run(self, job: Job[T], seconds: float, ended: threading.Event) -> T:
        try:
            async with asyncio.timeout(seconds):
                return await job(await self._opened())
        finally:
            ended.set()

    def close(self) -> None:
        closing = asyncio.run_coroutine_threadsafe(self._close(), self.loop)
        try:
            closing.result(CLOSE_SECONDS_MAX)
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(CLOSE_SECONDS_MAX)

    async def _opened(self) -> MemoryManager:
        async with self._opening:
            if self._manager is None:
                self._manager = await self._make_manager().start()
        return self._manager

    async def _close(self) -> None:
        async with self._opening:
            manager, self._manager = self._manager, None
        if manager is not None:
            await manager.close()

    def _serve(self) -> Any:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()
