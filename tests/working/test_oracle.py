"""Any sequence of calls, in every place, against a dictionary that knows the rules."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemic.errors import InvalidInput
from mnemic.model.scope import Scope
from mnemic.testing.clock import TickingClock
from mnemic.testing.working_contract import contract_settings
from mnemic.tier.working import WorkingMemory

KEYS_MAX = 4
NOTES_MAX = 3
TTL = 3_600
_runs = count()

names = st.sampled_from(["a", "b*", "c\x00", "{d}", "e", "\\"])
calls = st.one_of(
    st.tuples(
        st.just("set"),
        names,
        st.sampled_from([None, 1, 1.0, "x", [1e17]]),
        st.sampled_from([None, None, 60, 7_200]),
        st.booleans(),
        st.sampled_from([None, None, True, False]),
    ),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("append"), st.sampled_from(["n", "o"])),
    st.tuples(st.just("clear")),
    st.tuples(st.just("save")),
    st.tuples(st.just("restore")),
    st.tuples(st.just("wait"), st.sampled_from([1, 59, 60, TTL, 8_000])),
)


@dataclass
class Oracle:
    """The rules once more, in the plainest words."""

    now: float = 0
    held: dict[str, tuple[Any, float | None, bool]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    notes_end: float = 0
    saved: tuple[dict[str, tuple[Any, float | None, bool]], list[str]] | None = None

    def live(self) -> dict[str, tuple[Any, float | None, bool]]:
        return {
            key: held for key, held in self.held.items() if held[1] is None or held[1] > self.now
        }

    def set(self, key: str, value: Any, ttl: float | None, *, forever: bool) -> bool:
        """Whether it fits."""
        self.held = self.live()
        old = self.held.get(key)
        if old is None and len(self.held) >= KEYS_MAX:
            return False
        if forever:
            ends, told = None, True
        elif ttl is not None:
            ends, told = self.now + ttl, True
        elif old is None:
            ends, told = self.now + TTL, False
        elif old[2]:
            ends, told = old[1], True
        else:
            ends, told = max(old[1] or 0, self.now + TTL), False
        self.held[key] = (value, ends, told)
        return True

    def append(self, text: str) -> bool:
        """Whether it fits."""
        if self.notes_end <= self.now:
            self.notes = []
        if len(self.notes) >= NOTES_MAX:
            return False
        self.notes.append(text)
        self.notes_end = self.now + TTL
        return True

    def read_notes(self) -> list[str]:
        return self.notes if self.notes_end > self.now else []

    def restore(self) -> None:
        if self.saved is not None:
            held, notes = self.saved
            self.held = {
                key: (value, ends if told else self.now + TTL, told)
                for key, (value, ends, told) in held.items()
            }
            self.notes = list(notes)
            self.notes_end = self.now + TTL


async def run(
    memory: WorkingMemory, oracle: Oracle, call: tuple[Any, ...], last: str | None
) -> str:
    """One call in both; the id of the newest checkpoint."""
    saved = last or ""
    match call:
        case ("set", key, value, ttl, forever, durable):
            forever = forever and ttl is None
            if oracle.set(key, value, ttl, forever=forever):
                await memory.set(key, value, ttl, forever=forever, durable=durable)
            else:
                with pytest.raises(InvalidInput, match="keys"):
                    await memory.set(key, value, ttl, forever=forever, durable=durable)
        case ("delete", key):
            existed = key in oracle.live()
            oracle.held.pop(key, None)
            assert await memory.delete(key) is existed
        case ("append", text):
            if oracle.append(text):
                await memory.append_scratchpad(text)
            else:
                with pytest.raises(InvalidInput, match="scratchpad"):
                    await memory.append_scratchpad(text)
        case ("clear",):
            assert await memory.clear() == len(oracle.live())
            oracle.held, oracle.notes = {}, []
        case ("save",):
            saved = await memory.create_checkpoint()
            oracle.saved = (oracle.live(), list(oracle.read_notes()))
        case ("restore",) if saved:
            await memory.restore_checkpoint(saved)
            oracle.restore()
    return saved


@pytest.mark.parametrize("place", ["local", "valkey", "valkey without fields", "postgres"])
@settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(calls, min_size=8, max_size=25))
async def test_every_place_does_what_the_rules_say(
    opened: Callable[..., Any],
    clock: TickingClock,
    place: str,
    sequence: list[tuple[Any, ...]],
) -> None:
    limits = contract_settings(
        place=place.partition(" ")[0],
        keys_max=KEYS_MAX,
        scratchpad_entries_max=NOTES_MAX,
        checkpoints_max=100,
    )
    async with AsyncExitStack() as stack:
        places = await stack.enter_async_context(
            opened(limits, fields_expire=None if " " not in place else False)
        )
        memory = WorkingMemory(places, Scope.user(f"oracle-{next(_runs)}").session("s"))
        oracle = Oracle()
        saved: str | None = None
        for call in sequence:
            if call[0] == "wait":
                clock.advance(timedelta(seconds=call[1]))
                oracle.now += call[1]
            else:
                saved = await run(memory, oracle, call, saved)
            expected = {key: held[0] for key, held in sorted(oracle.live().items())}
            record = await memory.record()
            assert list(record.values.items()) == list(expected.items())
            assert record.scratchpad == tuple(oracle.read_notes())
            assert await memory.get("a", "absent") == expected.get("a", "absent")
        assert await memory.list_keys() == sorted(expected)
