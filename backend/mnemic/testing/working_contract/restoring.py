"""Clearing, checkpoints and their restore."""

from __future__ import annotations

import asyncio

from mnemic.errors import NotFound
from mnemic.model.working import TaskState
from mnemic.testing.builders import a_scope
from mnemic.testing.working_contract.subject import (
    CHECKPOINTS_MAX,
    KEYS_MAX,
    TTL,
    WRITERS,
    WorkingSubject,
    equal,
    refused,
    yes,
)
from mnemic.tier.working import WorkingMemory

__all__ = [
    "a_checkpoint_is_complete_and_a_restore_can_be_undone",
    "a_restore_does_not_revive_what_was_told_to_expire",
    "checkpoints_belong_to_their_scope",
    "clear_empties_the_scope",
    "nobody_sees_half_of_a_restore",
]


async def _fill(memory: WorkingMemory) -> None:
    await memory.set("a", {"n": 1.0})
    await memory.set("b\x00*", None, ttl_seconds=3_000)
    await memory.set("c", "for ever", forever=True)
    await memory.set("d", [1], durable=True)
    await memory.set_task_state(TaskState("step", "running", 0.25))
    await memory.append_scratchpad("first")
    await memory.append_scratchpad("second")


async def clear_empties_the_scope(subject: WorkingSubject) -> None:
    """It counts the keys, and leaves the checkpoints."""
    memory = subject.memory()
    await _fill(memory)
    saved = await memory.create_checkpoint()
    await memory.set("gone", 1, ttl_seconds=60)
    subject.pass_time(60)
    equal(await memory.clear(), 4)
    yes((await memory.record()).is_empty)
    equal([str(one.id) for one in await memory.checkpoints()], [saved])
    await memory.set("k", 1)
    equal(await memory.get_all(), {"k": 1})


async def a_checkpoint_is_complete_and_a_restore_can_be_undone(subject: WorkingSubject) -> None:
    """Values, times to live, task state and notes; what came since is gone, and comes back."""
    memory = subject.memory()
    await _fill(memory)
    before = await memory.record()
    saved = await memory.create_checkpoint()
    await memory.set("a", "changed")
    await memory.delete("c")
    await memory.set("new", 1)
    await memory.set("newer", 1, durable=True)
    await memory.set_task_state(TaskState("other"))
    await memory.append_scratchpad("third")
    after = await memory.record()
    await memory.restore_checkpoint(saved)
    equal(await memory.record(), before)
    undo = (await memory.status()).undo_checkpoint
    equal(sorted(one.reason for one in await memory.checkpoints()), ["checkpoint", "undo"])
    await memory.restore_checkpoint(undo or "")
    equal(await memory.record(), after)
    await memory.restore_checkpoint(saved)
    subject.pass_time(3_000)
    equal(sorted((await memory.record()).values), ["a", "c", "d"])
    await memory.set("a", "still writable")
    await memory.set("d", "still durable")
    equal(await memory.get("a"), "still writable")
    equal(await memory.get("d"), "still durable")


async def a_restore_does_not_revive_what_was_told_to_expire(subject: WorkingSubject) -> None:
    """The default time to live is housekeeping, and begins anew."""
    memory = subject.memory()
    await _fill(memory)
    saved = await memory.create_checkpoint()
    subject.pass_time(TTL.total_seconds() * 2)
    equal(await memory.list_keys(), ["c"])
    await memory.restore_checkpoint(saved)
    equal(await memory.list_keys(), ["a", "c", "d"])
    equal(await memory.get_scratchpad(), ["first", "second"])
    subject.pass_time(TTL.total_seconds() - 1)
    equal(await memory.get("a"), {"n": 1.0})


async def checkpoints_belong_to_their_scope(subject: WorkingSubject) -> None:
    """Another scope's is not found, as one that never was; only the newest are kept."""
    tenant = a_scope()
    memory, other, stranger = (
        subject.memory(scope) for scope in (tenant.session("1"), tenant.session("2"), a_scope())
    )
    await memory.set("k", 1)
    saved = []
    for _ in range(CHECKPOINTS_MAX + 1):
        saved.append(await memory.create_checkpoint())
        subject.pass_time(1)
    await other.set("k", 2)
    for unknown in (saved[-1], "00000000-0000-0000-0000-000000000000", "nonsense", "", "*"):
        await refused(NotFound, other.restore_checkpoint(unknown))
        await refused(NotFound, stranger.restore_checkpoint(unknown))
    equal(await other.get("k"), 2)
    await refused(NotFound, memory.restore_checkpoint(saved[0]))
    equal([str(one.id) for one in await memory.checkpoints()], saved[:0:-1])


async def nobody_sees_half_of_a_restore(subject: WorkingSubject) -> None:
    """Readers beside it find all of one state or all of the other."""
    memory = subject.memory()
    names = [f"k{number}" for number in range(KEYS_MAX)]
    for number, name in enumerate(names):
        await memory.set(name, "old", durable=number % 2 == 0)
    saved = await memory.create_checkpoint()
    for name in names:
        await memory.set(name, "new")
    readers = [asyncio.ensure_future(memory.get_all()) for _ in range(WRITERS)]
    restore = asyncio.ensure_future(memory.restore_checkpoint(saved))
    readers += [asyncio.ensure_future(memory.get_all()) for _ in range(WRITERS)]
    for reader in readers:
        seen = await reader
        if set(seen.values()) not in ({"old"}, {"new"}) or len(seen) != KEYS_MAX:
            raise AssertionError(f"half of a restore: {seen}")
    await restore
    equal(set((await memory.get_all()).values()), {"old"})
