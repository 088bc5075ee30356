"""Every place where a text comes in by the front door, and bytes to send there.

A new one is a line of `DOORS`: `tests/oracles/test_total.py` then sends it what it sends them all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from mnemic import EpisodeCreate, MemoryManager, ProcedureCreate, Receipt, Scope, Step, TaskState
from mnemic.testing import a_fact, a_turn
from mnemic.testing.builders import AT

__all__ = ["DOORS", "SHAPES", "Door", "Kept", "Sent", "drawn", "raw", "readings"]

SHAPES = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98",
    b"a\x1b[31m\x07",
    b"'; --",
    b"\\",
    b"{}",
    b"[1e999]",
    b"%s%n{0}",
    b"*?[",
    b"(",
    b"1.",
    b"\xe2\x80\xae\xe2\x80\x8b",
    b"\xcc\x81" * 40,
    b"9" * 5_000,
    b"a" * 600,
    "\U0001f469\u200d\U0001f680 \u00df \u0130 \ufdfa".encode(),
    b"1970-01-01 on 31 February 99999",
)
raw = (
    st.binary(max_size=40)
    | st.sampled_from(SHAPES)
    | st.text(max_size=20).map(lambda text: text.encode(errors="surrogatepass"))
)
"""Bytes of every kind: random ones, some with a history, and texts."""


def drawn(seed: int, *, count: int) -> list[bytes]:
    """The shapes, and so many of random bytes, each on one line, where Hypothesis cannot be."""
    random = Random(seed)
    made = [random.randbytes(random.randint(1, 60)) for _ in range(count)]
    return [one.replace(b"\n", b"\r") for one in (*SHAPES, *made)]


readings: dict[str, Callable[[bytes], str]] = {
    "a strict reader": lambda given: given.decode(errors="replace"),
    "an argument": lambda given: given.decode(errors="surrogateescape"),
    "an old page": lambda given: given.decode("latin-1"),
    "a wide one": lambda given: given.decode("utf-16-le", errors="ignore"),
}
"""What bytes become before they are a text of Python."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory, as its receipt names it."""

    id: UUID
    kind: str


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent, and what of it is there to be used: memories, a key, or an answer alone."""

    scope: Scope
    kept: tuple[Kept | Receipt, ...] = ()
    key: str | None = None


Send = Callable[[MemoryManager, Scope, str], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Door:
    """`send` hands a text in; what is wrong with it is named by one of `fields`."""

    name: str
    send: Send
    fields: frozenset[str]

    def __str__(self) -> str:
        return self.name


def _remembered(memory_type: str, form: str = "{}", **options: Any) -> Send:
    async def send(memory: MemoryManager, scope: Scope, text: str) -> Sent:
        told = form.replace("{}", text)
        made = await memory.remember(told, scope=scope, memory_type=memory_type, **options)
        return Sent(scope, () if made.kind == "working" else (made,))

    return send


def _stated(name: str, wrap: Callable[[str], Any] = str) -> Send:
    async def send(memory: MemoryManager, scope: Scope, text: str) -> Sent:
        fact = a_fact(**{"predicate": "knows", name: wrap(text)})
        return Sent(scope, (await memory.store_fact(fact, scope=scope),))

    return send


def _said(name: str, wrap: Callable[[str], Any] = str) -> Send:
    async def send(memory: MemoryManager, scope: Scope, text: str) -> Sent:
        session = scope.session("s")
        said = [a_turn(**{name: wrap(text)})]
        return Sent(session, tuple(await memory.sessions.append(said, scope=session)))

    return send


def _lived(name: str) -> Send:
    async def send(memory: MemoryManager, scope: Scope, text: str) -> Sent:
        told = EpisodeCreate(**{"task_description": "Went well", "occurred_at": AT, name: text})
        kept = await memory.at(scope).episodic.record_episode(told)
        return Sent(scope, (Kept(kept.id, "episode"),))

    return send


def _way(**made: Callable[[str], Any]) -> Send:
    async def send(memory: MemoryManager, scope: Scope, text: str) -> Sent:
        fields = {"name": "Deploy", "steps": (Step(action="Tag it"),)}
        fields |= {name: make(text) for name, make in made.items()}
        kept = await memory.at(scope).procedural.record_procedure(ProcedureCreate(**fields))
        return Sent(scope, (Kept(kept.id, "procedure"),))

    return send


async def _in_a_session(memory: MemoryManager, scope: Scope, text: str) -> Sent:
    session = scope.session(text)
    return Sent(session, tuple(await memory.sessions.append([a_turn()], scope=session)))


async def _of_a_tenant(memory: MemoryManager, _: Scope, text: str) -> Sent:
    scope = Scope.user(f"generated {text}") if text else Scope.user(text)
    return Sent(scope, (await memory.store_fact(a_fact(), scope=scope),))


async def _under_a_key(memory: MemoryManager, scope: Scope, text: str) -> Sent:
    await memory.at(scope).working.set(text, 1)
    return Sent(scope, key=text)


async def _as_a_value(memory: MemoryManager, scope: Scope, text: str) -> Sent:
    await memory.at(scope).working.set("k", {text: [text]})
    return Sent(scope, key="k")


async def _as_a_note(memory: MemoryManager, scope: Scope, text: str) -> Sent:
    await memory.at(scope).working.append_scratchpad(text)
    assert (await memory.at(scope).working.get_scratchpad())[-1] == text
    return Sent(scope)


async def _as_a_state(memory: MemoryManager, scope: Scope, text: str) -> Sent:
    await memory.at(scope).working.set_task_state(TaskState(text, description=text))
    assert (await memory.at(scope).working.get_task_state()) is not None
    return Sent(scope)


def _asked(ask: Callable[[MemoryManager, Scope, str], Awaitable[Any]]) -> Send:
    async def send(memory: MemoryManager, scope: Scope, text: str) -> Sent:
        await ask(memory, scope, text)
        return Sent(scope)

    return send


def _doors(**sends: tuple[Send, str]) -> tuple[Door, ...]:
    return tuple(
        Door(name.replace("_", " "), send, frozenset(fields.split()))
        for name, (send, fields) in sends.items()
    )


DOORS: tuple[Door, ...] = _doors(
    a_statement=(_remembered("semantic"), "content object subject"),
    an_experience=(_remembered("episodic"), "content"),
    a_way=(_remembered("procedural", "{}\n1. {}"), "content name steps"),
    a_working_value=(_remembered("working", key="k"), "content"),
    a_subject=(_stated("subject"), "subject content"),
    a_predicate=(_stated("predicate"), "predicate content"),
    an_object=(_stated("object"), "object content"),
    a_content=(_stated("content"), "content"),
    a_category=(_stated("category"), "category"),
    a_source=(_stated("source"), "source"),
    a_tag=(_stated("tags", lambda text: [text]), "tags"),
    a_metadata_key=(_stated("metadata", lambda text: {text: {text: text}}), "metadata"),
    a_turn=(_said("text"), "text"),
    an_actor=(_said("actor"), "actor"),
    a_caption=(_said("caption"), "caption"),
    an_external_id=(_said("external_id"), "external_id"),
    a_task=(_lived("task_description"), "task_description content"),
    a_task_type=(_lived("task_type"), "task_type"),
    a_name=(_way(name=str), "name"),
    a_step=(_way(steps=lambda text: (Step(action=text),)), "steps"),
    a_trigger=(_way(trigger_pattern=str), "trigger_pattern"),
    a_session=(_in_a_session, "session"),
    a_tenant=(_of_a_tenant, "tenant"),
    a_key=(_under_a_key, "key"),
    a_value=(_as_a_value, "value"),
    a_note=(_as_a_note, "content"),
    a_state=(_as_a_state, "current_step description"),
    a_question=(_asked(lambda m, s, text: m.recall(text, scope=s)), "query"),
    a_prompt=(_asked(lambda m, s, text: m.context(text, scope=s)), "query"),
    an_entity=(_asked(lambda m, s, text: m.at(s).semantic.get_by_entity(text)), "entity"),
    a_moment=(_asked(lambda m, s, text: m.at(s).procedural.find_matching(text)), "context"),
    a_pattern=(_asked(lambda m, s, text: m.at(s).working.list_keys(text)), "pattern"),
    an_id=(_asked(lambda m, s, text: m.forget([text], scope=s)), "ids"),  # type: ignore[list-item]
    a_checkpoint=(
        _asked(lambda m, s, text: m.at(s).working.restore_checkpoint(text)),
        "checkpoint_id",
    ),
)
"""Every place where a caller's text comes in by the front door."""
