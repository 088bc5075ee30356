"""Limits, and writers at once: what does not fit is refused, and nothing is dropped for it."""

from __future__ import annotations

import asyncio
from typing import Any

from mnemic.errors import InvalidInput
from mnemic.model.working import TaskState
from mnemic.testing.working_contract.subject import (
    BYTES_MAX,
    KEYS_MAX,
    NOTES_MAX,
    TTL,
    WRITERS,
    WorkingSubject,
    equal,
    refused,
    yes,
)

__all__ = [
    "bytes_beyond_the_limit_are_refused",
    "keys_beyond_the_limit_are_refused",
    "the_scratchpad_keeps_its_order",
    "the_task_state_is_kept_whole",
    "writers_at_once_all_count",
    "writers_at_once_do_not_pass_the_limits",
]


async def keys_beyond_the_limit_are_refused(subject: WorkingSubject) -> None:
    """None is dropped for them; deleting or expiring one makes room."""
    memory = subject.memory()
    for number in range(KEYS_MAX - 1):
        await memory.set(f"k{number}", number)
    await memory.set("short", 0, ttl_seconds=60)
    await refused(InvalidInput, memory.set("more", 1), field="key")
    await memory.set("k1", "overwritten")
    await memory.set_task_state(TaskState())
    equal(len(await memory.list_keys()), KEYS_MAX)
    yes(await memory.delete("k0"))
    await memory.set("more", 1)
    await refused(InvalidInput, memory.set("again", 1), field="key")
    subject.pass_time(60)
    await memory.set("again", 1)
    await refused(InvalidInput, memory.set("short", 1), field="key")
    equal(len(await memory.list_keys()), KEYS_MAX)


async def bytes_beyond_the_limit_are_refused(subject: WorkingSubject) -> None:
    """Of values and notes together; a smaller value always fits."""
    memory = subject.memory()
    large = "x" * (BYTES_MAX // 2 - 100)
    await memory.set("a", large)
    await memory.set("b", large)
    await refused(InvalidInput, memory.set("c", large), field="value")
    await refused(InvalidInput, memory.append_scratchpad("n" * 1_000), field="value")
    await memory.set("a", "small")
    await memory.append_scratchpad("n" * 1_000)
    await memory.set("c", large[:-2_000])
    equal(await memory.get("b"), large)
    await refused(InvalidInput, memory.set("a", large), field="value")
    equal(await memory.get("a"), "small")


async def writers_at_once_do_not_pass_the_limits(subject: WorkingSubject) -> None:
    """However many there are, durable or not."""
    memory = subject.memory()
    calls = [
        memory.set(f"k{number}", number, durable=number % 3 == 0) for number in range(2 * KEYS_MAX)
    ]
    calls += [memory.append_scratchpad(f"n{number}") for number in range(2 * NOTES_MAX)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    equal(sum(answer is None for answer in answers), KEYS_MAX + NOTES_MAX)
    equal({type(answer) for answer in answers} - {type(None)}, {InvalidInput})
    kept = {f"k{n}": n for n in range(2 * KEYS_MAX) if answers[n] is None}
    equal(await memory.get_all(), dict(sorted(kept.items())))
    equal(len(await memory.get_scratchpad()), NOTES_MAX)


async def writers_at_once_all_count(subject: WorkingSubject) -> None:
    """Each value that was acknowledged was there; of one key, one of them stays."""
    memory = subject.memory()
    await asyncio.gather(
        *(memory.set("k", number) for number in range(WRITERS)),
        *(memory.append_scratchpad(f"note {number}") for number in range(NOTES_MAX)),
        *(memory.set(f"own {number}", number) for number in range(KEYS_MAX - 1)),
    )
    held = await memory.get_all()
    yes(held.pop("k") in range(WRITERS))
    equal(held, dict(sorted((f"own {number}", number) for number in range(KEYS_MAX - 1))))
    equal(sorted(await memory.get_scratchpad()), [f"note {n}" for n in range(NOTES_MAX)])


async def the_task_state_is_kept_whole(subject: WorkingSubject) -> None:
    """It is no key, and the last one stands."""
    memory = subject.memory()
    state = TaskState("write", "blocked", 0.5, "The report", {"tries": 2, "by": [1.0, None]})
    await memory.set_task_state(TaskState(current_step=1))
    await memory.set_task_state(state)
    equal(await memory.get_task_state(), state)
    equal(await memory.list_keys(), [])
    wrong: Any = {"current_step": 1}
    await refused(InvalidInput, memory.set_task_state(wrong), field="state")
    subject.pass_time(TTL.total_seconds())
    equal(await memory.get_task_state(), None)


async def the_scratchpad_keeps_its_order(subject: WorkingSubject) -> None:
    """It only grows, to its limit, and expires as a whole after the last note."""
    memory = subject.memory()
    for number in range(NOTES_MAX):
        await memory.append_scratchpad(f"note {number}\n*")
        subject.pass_time(TTL.total_seconds() * 0.4)
    notes = [f"note {number}\n*" for number in range(NOTES_MAX)]
    equal(await memory.get_scratchpad(), notes)
    await refused(InvalidInput, memory.append_scratchpad("one more"), field="content")
    for wrong in ("", "  ", "\x00", "\ud800", 1, None):
        given: Any = wrong
        await refused(InvalidInput, memory.append_scratchpad(given), field="content")
    equal(await memory.get_scratchpad(), notes)
    equal(await memory.list_keys(), [])
    subject.pass_time(TTL.total_seconds() * 0.6)
    equal(await memory.get_scratchpad(), [])
    await memory.append_scratchpad("anew")
    equal(await memory.get_scratchpad(), ["anew"])
