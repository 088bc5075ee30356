"""Times to live."""

from __future__ import annotations

import math
from typing import Any

from mnemic.errors import InvalidInput
from mnemic.testing.working_contract.subject import TTL, WorkingSubject, equal, no, refused

__all__ = [
    "a_key_expires_when_it_was_told_to",
    "a_key_that_has_expired_begins_anew",
    "an_update_keeps_the_moment_that_was_given",
    "the_default_time_to_live_is_put_off_by_writes",
    "times_to_live_that_make_no_sense_are_refused",
]


async def a_key_expires_when_it_was_told_to(subject: WorkingSubject) -> None:
    """To the millisecond, rounded up; then it is missing everywhere."""
    memory = subject.memory()
    for durable in (False, True):
        await memory.set("k", 1, 90.0001, durable=durable)
        await memory.set("other", 2)
        subject.pass_time(90)
        equal(await memory.get("k"), 1)
        subject.pass_time(0.001)
        equal(await memory.get("k"), None)
        no(await memory.exists("k"))
        equal(await memory.list_keys(), ["other"])
        equal(await memory.get_all(), {"other": 2})
        no(await memory.delete("k"))


async def an_update_keeps_the_moment_that_was_given(subject: WorkingSubject) -> None:
    """Unless it is told another; reading changes nothing."""
    memory = subject.memory()
    for durable in (False, True):
        await memory.set("k", 1, ttl_seconds=100)
        subject.pass_time(60)
        await memory.set("k", 2, durable=durable)
        equal(await memory.get("k"), 2)
        subject.pass_time(40)
        equal(await memory.get("k"), None, "the moment stayed")
        await memory.set("k", 3, ttl_seconds=100, durable=durable)
        await memory.set("k", 4, ttl_seconds=200)
        subject.pass_time(150)
        equal(await memory.get("k"), 4, "told another")
        await memory.set("k", 5, forever=True)
        await memory.set("k", 6)
        subject.pass_time(TTL.total_seconds() * 100)
        equal(await memory.get("k"), 6, "for ever, and an update keeps that")
        await memory.set("k", 7, ttl_seconds=60)
        subject.pass_time(60)
        no(await memory.exists("k"))


async def the_default_time_to_live_is_put_off_by_writes(subject: WorkingSubject) -> None:
    """It is housekeeping: what is still written stays."""
    memory = subject.memory()
    await memory.set("written", 1)
    await memory.set("read", 1)
    for _ in range(3):
        subject.pass_time(TTL.total_seconds() * 0.4)
        await memory.set("written", 2)
        await memory.get("read")
    equal(await memory.get_all(), {"written": 2})


async def a_key_that_has_expired_begins_anew(subject: WorkingSubject) -> None:
    """It does not inherit the old moment, and nothing revives it."""
    memory = subject.memory()
    for durable in (False, True):
        await memory.set("k", 1, ttl_seconds=60, durable=durable)
        subject.pass_time(61)
        equal(await memory.get("k"), None)
        await memory.set("k", 2)
        subject.pass_time(TTL.total_seconds() - 1)
        equal(await memory.get("k"), 2)
        subject.pass_time(1)
        equal(await memory.get("k"), None)


async def times_to_live_that_make_no_sense_are_refused(subject: WorkingSubject) -> None:
    """With the field, and without an effect."""
    memory = subject.memory()
    await memory.set("k", 1)
    for ttl in (0, -1, 0.0, -0.5, math.nan, math.inf, -math.inf, 10**12, 10**400, True, "60", [1]):
        wrong: Any = ttl
        await refused(InvalidInput, memory.set("k", 2, wrong), field="ttl_seconds")
    await refused(InvalidInput, memory.set("k", 2, 60, forever=True), field="ttl_seconds")
    equal(await memory.get("k"), 1)
