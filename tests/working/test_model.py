"""Three processes, three connections that are cut at random, and a Valkey that is killed.

The driver asks one process at a time, so that the order of all writes is known. What must hold:
nobody reads a value that was never written there; what was acknowledged is there in the end, or
its loss was reported by a process; a durable value is always the last one written.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from working_proxy import Proxy
from working_valkey import Valkey

from mnemic.testing.builders import a_scope

PROCESSES = 3
STEPS = 2_000
SCRIPT = Path(__file__).with_name("working_process.py")
CLOCKS_BEHIND_MS = (0, 40, 400)
SETTINGS = {
    "on_outage": "degrade",
    "timeout_seconds": 5,
    "connect_timeout_seconds": 5,
    "retry_after_seconds": 0.02,
    "durable_lease_seconds": 0.05,
}
PLAIN = ("a", "b*", "c\x00{")
DURABLE = ("d", "e:")
SESSIONS = ("one", "two")
_ABSENT = "absent"


class Peer:
    """One of the processes, with a connection of its own to Valkey."""

    def __init__(self, proxy: Proxy, told: dict[str, Any]) -> None:
        self.proxy = proxy
        self._told = {**told, "redis_url": proxy.url}
        self._process: asyncio.subprocess.Process | None = None
        self.is_cut = False

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *(str(SCRIPT), json.dumps(self._told)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )

    async def ask(self, tenant: str, session: str, method: str, **arguments: Any) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"tenant": tenant, "session": session, "method": method, "arguments": arguments}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        async with asyncio.timeout(20):
            answer: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return answer

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            await self._process.wait()


@dataclass
class Told:
    """What is known of one key: all that was written to it, in order."""

    written: list[tuple[Any, int, bool]] = field(default_factory=list)  # value, peer, held
    settled: Any = _ABSENT  # when everybody was last in touch

    def write(self, value: Any, peer: int, *, held: bool) -> None:
        self.written.append((value, peer, held))

    @property
    def last(self) -> Any:
        return self.written[-1][0] if self.written else self.settled

    def readable(self) -> set[Any]:
        """What a process in touch may find: the last write that arrived, or one that was held."""
        arrived = [value for value, _, held in self.written if not held]
        held = {value for value, _, held in self.written if held}
        return {arrived[-1] if arrived else self.settled} | held

    def own(self, peer: int) -> Any:
        """What a process out of touch wrote last itself."""
        mine = [value for value, writer, held in self.written if writer == peer and held]
        return mine[-1] if mine else None


class Model:
    """The driver and its plain memory of what happened."""

    def __init__(self, peers: list[Peer], valkey: Valkey, seed: int) -> None:
        self.peers = peers
        self.valkey = valkey
        self.random = random.Random(seed)
        self.tenant = a_scope().tenant.external_id + f"-{seed}"
        self.keys = {(s, k): Told() for s in SESSIONS for k in (*PLAIN, *DURABLE)}
        self.notes: dict[str, list[tuple[str, int, bool]]] = {s: [] for s in SESSIONS}
        self.killed_notes: set[str] = set()
        self.killed_writes: set[tuple[str, str]] = set()
        self.conflicts: set[tuple[Any, ...]] = set()
        self.reported: set[tuple[str, str]] = set()  # since everybody was last in touch
        self.counts: dict[str, int] = {}
        self.number = 0

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    async def step(self) -> None:
        chance = self.random.random()
        if chance < 0.05:
            await self.disturb()
        elif chance < 0.056:
            await self.settle()
        elif chance < 0.13:
            await self.append()
        elif chance < 0.45:
            await self.write()
        elif chance < 0.55:
            await self.delete()
        else:
            await self.read()

    async def disturb(self) -> None:
        peer = self.random.choice(self.peers)
        what = self.random.choice(["cut", "cut", "open", "open", "reset", "lose", "kill", "peer"])
        self.count(what)
        if what == "cut":
            await peer.proxy.cut()
            peer.is_cut = True
        elif what == "open":
            await peer.proxy.open()
            peer.is_cut = False
        elif what == "reset":
            peer.proxy.reset()
        elif what == "lose":
            peer.proxy.lose_answers(self.random.randint(1, 3))
        elif what == "kill":
            await self.valkey.kill()
            await self.valkey.start()
        elif self.random.random() < 0.3:
            await self.kill(self.peers.index(peer))

    async def kill(self, index: int) -> None:
        """What it held is lost with it, as its status had said."""
        peer = self.peers[index]
        await peer.kill()
        for name, told in self.keys.items():
            if any(writer == index and held for _, writer, held in told.written):
                self.killed_writes.add(name)
        for notes in self.notes.values():
            self.killed_notes |= {text for text, writer, held in notes if writer == index and held}
        await peer.proxy.open()
        peer.is_cut = False
        await peer.start()

    async def ask(self, index: int, session: str, method: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.peers[index].ask(self.tenant, session, method, **arguments)
        for key, *rest in answer["conflicts"]:
            conflict = (index, session, key, *rest)
            if conflict not in self.conflicts:
                self.conflicts.add(conflict)
                self.reported.add((session, key))
        if "error" in answer:
            self.count(answer["error"])
            assert answer["error"] in {"StoreUnavailable", "OutcomeUnknown"}, answer
        return answer

    def pick(self) -> tuple[int, str, str]:
        peer = self.random.randrange(len(self.peers))
        return peer, self.random.choice(SESSIONS), self.random.choice((*PLAIN, *DURABLE))

    async def write(self) -> None:
        peer, session, key = self.pick()
        self.number += 1
        durable = {"durable": True} if key in DURABLE else {}
        answer = await self.ask(peer, session, "set", key=key, value=self.number, **durable)
        # A plain write is never refused here: this process holds it.
        assert "error" not in answer, answer
        held = answer["pending"] > 0 and key in PLAIN
        self.count("held" if held else "written")
        self.keys[session, key].write(self.number, peer, held=held)

    async def delete(self) -> None:
        peer, session, key = self.pick()
        answer = await self.ask(peer, session, "delete", key=key)
        told = self.keys[session, key]
        if answer.get("error") == "OutcomeUnknown":
            told.write(_ABSENT, peer, held=True)
            told.write(told.last, peer, held=True)
            self.killed_writes.add((session, key))
        elif "error" in answer:
            assert key in PLAIN or told.last == _ABSENT, answer
        else:
            held = answer["pending"] > 0 and key in PLAIN
            if key in DURABLE:
                assert answer["value"] == (told.last != _ABSENT)
            if answer["value"]:
                told.write(_ABSENT, peer, held=held)

    async def append(self) -> None:
        peer, session, _ = self.pick()
        self.number += 1
        text = f"note {self.number}"
        answer = await self.ask(peer, session, "append_scratchpad", content=text)
        assert "error" not in answer, answer
        self.notes[session].append((text, peer, answer["pending"] > 0))

    async def read(self) -> None:
        peer, session, key = self.pick()
        answer = await self.ask(peer, session, "get", key=key, default=_ABSENT)
        told = self.keys[session, key]
        if "error" in answer:
            assert answer["degraded"], answer
            assert key in PLAIN or told.last == _ABSENT
        elif key in DURABLE:
            self.count("durable read")
            assert answer["value"] == told.last, (key, answer, told)
        elif answer["degraded"]:
            self.count("read from the process")
            assert answer["value"] == told.own(peer), (key, answer, told)
        else:
            self.count("read in touch")
            assert answer["value"] in told.readable(), (key, answer, told)

    async def settle(self) -> None:
        """Everybody is in touch again, and what was held is merged."""
        for peer in self.peers:
            peer.proxy.lose_answers(0)
            await peer.proxy.open()
            peer.is_cut = False
        for index in range(len(self.peers)):
            for session in SESSIONS:
                async with asyncio.timeout(20):
                    while True:
                        answer = await self.ask(index, session, "list_keys")
                        if "error" not in answer and not answer["degraded"]:
                            break
                        await asyncio.sleep(0.02)
        for session in SESSIONS:
            await self.compare(session)
        self.killed_writes.clear()
        self.reported.clear()

    async def compare(self, session: str) -> None:
        """What all find is what was written last, or its loss was reported."""
        everything = [
            (await self.ask(index, session, "get_all"))["value"] for index in range(PROCESSES)
        ]
        assert everything[0] == everything[1] == everything[2]
        held = everything[0]
        assert set(held) <= {key for _, key in self.keys}
        for (where, key), told in self.keys.items():
            if where != session:
                continue
            found = held.get(key, _ABSENT)
            assert found in told.readable() | {told.last}, (key, found, told)
            if found != told.last:
                name = (session, key)
                assert key in PLAIN
                assert name in self.reported or name in self.killed_writes, (key, found, told)
                self.count("lost and reported")
            told.written.clear()
            told.settled = found
        notes = (await self.ask(0, session, "get_scratchpad"))["value"]
        written = {text for text, _, _ in self.notes[session]}
        assert len(notes) == len(set(notes))
        assert set(notes) <= written
        assert written - set(notes) <= self.killed_notes
        self.notes[session] = [(text, index, False) for text, index, _ in self.notes[session]]


@pytest.fixture
async def model_valkey(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Valkey]:
    made = Valkey(tmp_path_factory.mktemp("v"))
    await made.start()
    yield made
    await made.kill()


@pytest.fixture
async def peers(
    model_valkey: Valkey, working_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[list[Peer]]:
    made = []
    for behind in CLOCKS_BEHIND_MS:
        proxy = Proxy(tmp_path_factory.mktemp("p"), model_valkey.url)
        await proxy.open()
        told = {"database_url": working_url, "settings": SETTINGS, "clock_behind_ms": behind}
        made.append(Peer(proxy, told))
    await asyncio.gather(*(peer.start() for peer in made))
    yield made
    for peer in made:
        await peer.end()
        await peer.proxy.close()


@pytest.mark.parametrize("seed", [20_261])
async def test_nothing_is_lost_in_silence_over_2000_steps_with_outages(
    peers: list[Peer], model_valkey: Valkey, seed: int
) -> None:
    model = Model(peers, model_valkey, seed)

    for _ in range(STEPS):
        await model.step()
    await model.settle()

    # The run met what it is about.
    for what in ("cut", "kill", "held", "written", "read in touch", "read from the process"):
        assert model.counts[what] > 5, model.counts
    assert model.counts["lost and reported"] > 0, model.counts
