"""Keys, values, patterns, scopes: what may be held is held as it was given."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from mnemic.errors import InvalidInput
from mnemic.model.scope import Scope
from mnemic.model.working import TaskState
from mnemic.testing.working_contract.subject import (
    BYTES_MAX,
    KEYS_MAX,
    VALUES,
    WorkingSubject,
    equal,
    no,
    refused,
    typed,
    yes,
)

__all__ = [
    "a_durable_key_is_as_any_other",
    "a_fresh_scope_is_empty",
    "a_scope_sees_nothing_of_another",
    "any_text_is_a_key",
    "keys_that_cannot_be_held_are_refused",
    "no_pattern_runs_away",
    "patterns_match_keys",
    "values_come_back_equal_and_of_their_types",
    "what_json_cannot_hold_is_refused",
]

HOSTILE_KEYS = (
    *("*", "?", "[a-z]", "[", "]", "\\", "\\0", "\x00", "a\x00b", "\\\x00\\\\"),
    *("{tenant}", "}{", ":", "a:b", "k", "t", "g", "#k", "pk", "p", " ", "\n", "'; --", "%", "_"),
    *("å", "a\u030a", "\u200d", "\U0001f680", "é" * 5_000),
)


async def a_fresh_scope_is_empty(subject: WorkingSubject) -> None:
    """Nothing is there, and asking changes nothing."""
    memory = subject.memory()
    for _ in range(2):
        equal(await memory.get("a"), None)
        equal(await memory.get("a", 7), 7)
        no(await memory.exists("a"))
        no(await memory.delete("a"))
        equal(await memory.list_keys(), [])
        equal(await memory.get_all(), {})
        equal(await memory.clear(), 0)
        equal(await memory.get_task_state(), None)
        equal(await memory.get_scratchpad(), [])
        equal(await memory.checkpoints(), [])


async def values_come_back_equal_and_of_their_types(subject: WorkingSubject) -> None:
    """Every JSON value; a stored null is not a missing key."""
    memory = subject.memory()
    for value in VALUES:
        await memory.set("v", value)
        equal(typed(await memory.get("v", "missing")), typed(value))
        equal(typed(await memory.get_all()), typed({"v": value}))
    await memory.set("null", None)
    equal(await memory.get("null", "missing"), None)
    yes(await memory.exists("null"))


async def what_json_cannot_hold_is_refused(subject: WorkingSubject) -> None:
    """With the field, and without an effect."""
    memory = subject.memory()
    await memory.set("v", "before")
    deep: list[Any] = []
    for _ in range(40):
        deep = [deep]
    for value in (math.nan, math.inf, 2**63, {1: 2}, {"a": object()}, b"bytes", "a\x00", deep):
        await refused(InvalidInput, memory.set("v", value))
    await refused(InvalidInput, memory.set("v", "\ud800"), field="value")
    await refused(InvalidInput, memory.set("v", "x" * BYTES_MAX), field="value")
    equal(await memory.get("v"), "before")


async def any_text_is_a_key(subject: WorkingSubject) -> None:
    """Globs, separators, braces, NUL, 10 kB: stored, listed, read and deleted, each by itself."""
    memory = subject.memory()
    for durable in (False, True):
        for place in range(0, len(HOSTILE_KEYS), KEYS_MAX // 2):
            keys = HOSTILE_KEYS[place : place + KEYS_MAX // 2]
            for number, key in enumerate(keys):
                await memory.set(key, number, durable=durable)
            equal(await memory.list_keys(), sorted(keys))
            equal(await memory.get_all(), {key: keys.index(key) for key in sorted(keys)})
            for number, key in enumerate(keys):
                equal(await memory.get(key), number, repr(key))
                yes(await memory.exists(key))
                yes(await memory.delete(key))
                no(await memory.delete(key))
            equal(await memory.list_keys(), [])


async def keys_that_cannot_be_held_are_refused(subject: WorkingSubject) -> None:
    """By every method that takes one."""
    memory = subject.memory()
    for key in ("", "\ud800", "x" * 10_241, 1, None, b"k", ["k"]):
        wrong: Any = key
        await refused(InvalidInput, memory.set(wrong, 1), field="key")
        await refused(InvalidInput, memory.get(wrong), field="key")
        await refused(InvalidInput, memory.exists(wrong), field="key")
        await refused(InvalidInput, memory.delete(wrong), field="key")


async def patterns_match_keys(subject: WorkingSubject) -> None:
    """As documented; whatever the caller gives is only ever compared."""
    memory = subject.memory()
    keys = ["a", "ab", "abc", "a*", "b[1]", "\\", "x\ny", "\x00"]
    for key in keys:
        await memory.set(key, 1)
    expected = {
        "*": keys,
        "a*": ["a", "ab", "abc", "a*"],
        "a\\*": ["a*"],
        "?": ["a", "\\", "\x00"],
        "a?": ["ab", "a*"],
        "[ab]*": ["a", "ab", "abc", "a*", "b[1]"],
        "[!a]*": ["b[1]", "\\", "x\ny", "\x00"],
        "b\\[1\\]": ["b[1]"],
        "b[[]1]": ["b[1]"],
        "\\\\": ["\\"],
        "x?y": ["x\ny"],
        "**b**": ["ab", "abc", "b[1]"],
        "*c": ["abc"],
        "": [],
        "[": [],
        "nothing": [],
    }
    for pattern, found in expected.items():
        equal(await memory.list_keys(pattern), sorted(found), pattern)
    nothing: Any = None
    await refused(InvalidInput, memory.list_keys(nothing), field="pattern")


async def no_pattern_runs_away(subject: WorkingSubject) -> None:
    """A pattern that makes others go back for ever answers at once."""
    memory = subject.memory()
    await memory.set("a" * 10_000, 1)
    async with asyncio.timeout(5):
        equal(await memory.list_keys("*a" * 200 + "b"), [])


async def a_scope_sees_nothing_of_another(subject: WorkingSubject) -> None:
    """Equal and confusable names of tenants and scopes never meet."""
    one = Scope.user("u:1")
    scopes = [
        *(one, one.session("s"), one.session("s:t"), one.session("*"), one.agent("s")),
        *(one.project("s"), one.project("s").session("t"), one.project("*")),
        *(Scope.organisation("u:1"), Scope.user("u"), Scope.user("u:1}"), Scope.user("u:?")),
    ]
    for number, scope in enumerate(scopes):
        memory = subject.memory(scope)
        await memory.set("k", number)
        await memory.set("durable", number, durable=True)
        await memory.append_scratchpad(f"note {number}")
        await memory.set_task_state(TaskState(current_step=number))
    for number, scope in enumerate(scopes):
        memory = subject.memory(scope)
        equal(await memory.get_all(), {"durable": number, "k": number}, str(scope))
        equal(await memory.get_scratchpad(), [f"note {number}"])
        equal(await memory.get_task_state(), TaskState(current_step=number))
        equal(await memory.clear(), 2)
    for scope in scopes:
        equal(await subject.memory(scope).get_all(), {})


async def a_durable_key_is_as_any_other(subject: WorkingSubject) -> None:
    """Typed, listed, counted, cleared, restored, and gone when it is deleted or expires."""
    memory = subject.memory()
    for value in VALUES:
        await memory.set("d", value, durable=True)
        equal(typed(await memory.get("d", "missing")), typed(value))
    await memory.set("d", 1)
    await memory.set("e", 2, durable=True, ttl_seconds=60)
    await memory.set("p", 3)
    equal(await memory.get_all(), {"d": 1, "e": 2, "p": 3})
    saved = await memory.create_checkpoint()
    yes(await memory.delete("d"))
    no(await memory.delete("d"))
    subject.pass_time(60)
    equal(await memory.list_keys(), ["p"])
    await memory.set("d", 4, durable=True)
    equal(await memory.clear(), 2)
    equal(await memory.get_all(), {})
    await memory.restore_checkpoint(saved)
    equal(await memory.get_all(), {"d": 1, "p": 3})
    await memory.set("p", 5, durable=True)
    await memory.set("d", 6, durable=False)
    equal(await memory.get_all(), {"d": 6, "p": 5})
    for number in range(KEYS_MAX - 2):
        await memory.set(f"k{number}", number, durable=True)
    await refused(InvalidInput, memory.set("more", 1), field="key")
    await refused(InvalidInput, memory.set("more", 1, durable=True), field="key")
