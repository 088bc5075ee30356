"""The handle of working memory: what an agent holds while it works."""

from __future__ import annotations

from typing import Any

from mnemic.model.scope import Scope
from mnemic.model.working import TaskState, WorkingCheckpoint, WorkingRecord, WorkingStatus
from mnemic.service import working
from mnemic.store.working.opening import WorkingPlaces

__all__ = ["WorkingMemory"]


class WorkingMemory:
    """The working memory of one scope, usually a session; no other scope ever sees it.

    Keys are any text of up to `working.key_bytes_max` bytes (10 kB), values are JSON. Every method
    raises `InvalidInput` for what cannot be held, and `Unavailable` when it cannot give the whole
    answer: with Valkey away, what this process did not write itself since is not known to it.
    """

    def __init__(self, places: WorkingPlaces, scope: Scope) -> None:
        self._places = places
        self._scope = scope

    async def set(
        self,
        key: str,
        value: Any,
        ttl_seconds: float | None = None,
        *,
        forever: bool = False,
        durable: bool | None = None,
    ) -> None:
        """The key holds the value.

        It expires after `ttl_seconds` (more than 0, at most `working.ttl_max`; milliseconds count,
        rounded up), never with `forever`, and else when it did before; a new key after
        `working.ttl`, which each write puts off. With `durable` it is committed in PostgreSQL
        before this returns and stays so; `durable=False` takes that back. A scope that is full
        refuses: `working.keys_max`, `working.bytes_max`, `working.value_bytes_max`.
        """
        await working.put_value(
            self._places,
            self._scope,
            key,
            value,
            ttl_seconds=ttl_seconds,
            forever=forever,
            durable=durable,
        )

    async def get(self, key: str, default: Any = None) -> Any:
        """The value, equal to what was set and of its types; `default` if there is no such key."""
        return await working.get_value(self._places, self._scope, key, default)

    async def delete(self, key: str) -> bool:
        """Whether there was such a key; there is none now."""
        return await working.remove(self._places, self._scope, key)

    async def exists(self, key: str) -> bool:
        """Whether there is such a key, whatever it holds."""
        missing = object()
        return await working.get_value(self._places, self._scope, key, missing) is not missing

    async def list_keys(self, pattern: str = "*") -> list[str]:
        r"""The keys that match, sorted by code point.

        `*` is any run of characters, `?` one, `[a-z]` one of a set, `[!a-z]` one outside of it;
        a backslash takes the next character as it is.
        """
        return await working.keys_like(self._places, self._scope, pattern)

    async def get_all(self) -> dict[str, Any]:
        """Every key with its value, sorted by key, read at one moment."""
        return dict((await working.read_working(self._places, self._scope)).values)

    async def clear(self) -> int:
        """How many keys there were. Keys, task state and scratchpad are gone; checkpoints stay."""
        return await self._places.place.clear(self._scope, self._places.now())

    async def set_task_state(self, state: TaskState) -> None:
        """The task stands so."""
        await working.put_task(self._places, self._scope, state)

    async def get_task_state(self) -> TaskState | None:
        """How the task stands, if that was ever said."""
        return await working.get_task(self._places, self._scope)

    async def append_scratchpad(self, content: str) -> None:
        """The scratchpad ends with the content; at most `working.scratchpad_entries_max` fit."""
        await working.add_note(self._places, self._scope, content)

    async def get_scratchpad(self) -> list[str]:
        """What was appended, in order; it expires as a whole, `working.ttl` after the last."""
        return await self._places.place.notes(self._scope, self._places.now())

    async def create_checkpoint(self) -> str:
        """The id of a checkpoint of everything here, committed in PostgreSQL.

        The newest `working.checkpoints_max` of a scope are kept.
        """
        return str(await self._places.place.save(self._scope, self._places.now()))

    async def restore_checkpoint(self, checkpoint_id: str) -> None:
        """The scope holds what it held then; nobody sees half of it.

        What was there is a checkpoint itself: `status().undo_checkpoint`. Keys whose time to live
        was given and is over do not come back. Raises `NotFound`.
        """
        await working.restore(self._places, self._scope, checkpoint_id)

    async def checkpoints(self) -> list[WorkingCheckpoint]:
        """The checkpoints that can be restored, newest first."""
        return await self._places.place.saved(self._scope)

    async def record(self) -> WorkingRecord:
        """Everything that is held, read at one moment."""
        return await working.read_working(self._places, self._scope)

    async def status(self) -> WorkingStatus:
        """How this scope stands; it never fails, and asks nobody."""
        return self._places.place.status(self._scope)
