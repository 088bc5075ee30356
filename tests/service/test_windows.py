"""A short turn's vector takes in the turns before it, those that stand, and no others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from operator import mul
from uuid import UUID

import asyncpg
import pytest

from mnemic import Conflict, Forbidden, MemoryManager, Scope
from mnemic.model.embedding import Embedder, Vector
from mnemic.model.receipt import Receipt, VectorState
from mnemic.model.turn_vector import RECIPE, SHORT_WORDS_MAX, TURNS_BEFORE_MAX
from mnemic.settings import MemorySettings
from mnemic.store.vectors_codec import encode_halfvec
from mnemic.testing import TickingClock, a_conversation, a_turn
from mnemic.wiring import Wiring
from oracles.together import Gate
from oracles.windows import assert_windows, vectors_of

LONG = (
    "The quarterly report on the harbour works is due on Friday, and before that the two of us "
    "have to agree on the figures for the northern pier."
)
SECRET = "The alarm code of the villa is heliotrope seven."
TALK = ["Where were we?", SECRET, "Since when?", "Since May.", LONG, "Good."]
STATE = "SELECT id, needs_vector, vector_recipe FROM mnemic.turns WHERE tenant_id = $1 ORDER BY seq"
HISTORY = "SELECT count(*) FROM mnemic.memory_history WHERE tenant_id = $1"


class Held:
    """The model behind a gate."""

    def __init__(self, inner: Embedder) -> None:
        self.signature = inner.signature
        self.gate = Gate()
        self._inner = inner

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await self.gate.passed()
        return await self._inner.embed(texts)

    async def close(self) -> None:
        """The model stays open for others."""


def near(one: list[float] | None, other: Vector) -> float:
    assert one is not None
    return sum(map(mul, one, other))


async def due(seen: asyncpg.Connection, scope: Scope) -> list[UUID]:
    return [row["id"] for row in await seen.fetch(STATE, scope.tenant.id) if row["needs_vector"]]


async def test_a_batch_is_embedded_with_the_turns_before_each(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, embedder: Embedder
) -> None:
    session = scope.session("s")

    receipts = await memory.sessions.append(a_conversation(TALK), scope=session)

    await assert_windows(seen, scope, embedder)
    assert {one.vector for one in receipts} == {VectorState.READY}
    rows = await seen.fetch(STATE, scope.tenant.id)
    assert {(row["needs_vector"], row["vector_recipe"]) for row in rows} == {(False, RECIPE)}


async def test_a_long_turn_has_the_vector_of_its_own_text(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, embedder: Embedder
) -> None:
    receipts = await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))
    [long, short] = await embedder.embed([f"User: {LONG}", "Assistant: Good."])

    stored = await vectors_of(seen, scope)

    assert near(stored[receipts[4].id], long) == pytest.approx(1.0, abs=1e-3)
    assert near(stored[receipts[5].id], short) < 0.95


async def test_it_does_not_matter_in_how_many_calls_a_session_is_told(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, embedder: Embedder
) -> None:
    for name, parts in {"one": [1] * 6, "two": [2, 3, 1], "known": [4, 6]}.items():
        talk = a_conversation(TALK, name=name)
        told = 0
        for part in parts:
            # The last tells again what is known.
            start = 0 if name == "known" else told
            told = part if name == "known" else told + part
            await memory.sessions.append(talk[start:told], scope=scope.session(name))

    await assert_windows(seen, scope, embedder)


async def test_a_session_takes_in_nothing_of_another(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, embedder: Embedder
) -> None:
    await memory.sessions.append(a_conversation(TALK), scope=scope.session("one"))
    [first] = await memory.sessions.append([a_turn("Since when?")], scope=scope.session("two"))
    [alone] = await embedder.embed(["User: Since when?"])

    stored = await vectors_of(seen, scope)

    assert near(stored[first.id], alone) == pytest.approx(1.0, abs=1e-3)


async def test_what_many_append_at_once_is_right_in_the_end(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, embedder: Embedder
) -> None:
    session = scope.session("s")

    await asyncio.gather(
        *(
            memory.sessions.append([a_turn(f"It is {at}."), a_turn("Yes?")], scope=session)
            if at % 4
            else memory.sessions.append([a_turn(f"Number {at}.")], scope=session)
            for at in range(32)
        )
    )

    await assert_windows(seen, scope, embedder)


async def test_behind_a_turn_that_came_between_vectors_are_made_anew(
    memory: MemoryManager,
    settings: MemorySettings,
    scope: Scope,
    seen: asyncpg.Connection,
    embedder: Embedder,
) -> None:
    session = scope.session("s")
    await memory.sessions.append(a_conversation(TALK[:2]), scope=session)
    held = Held(embedder)

    async with MemoryManager(Wiring(settings, clock=TickingClock(), embedder=held)) as slow:
        held.gate.close()
        waiting = asyncio.create_task(
            slow.sessions.append([a_turn(text) for text in TALK[2:]], scope=session)
        )
        await held.gate.reached.wait()
        await memory.sessions.append([a_turn("Wait!")], scope=session)
        held.gate.open()
        receipts = await waiting

    states = [one.vector for one in receipts]
    assert states[:2] == [VectorState.PENDING] * 2, "another came before them"
    assert states[2:] == [VectorState.READY] * 2, "nothing of it is in these"
    await assert_windows(seen, scope, embedder)
    late = "SELECT id FROM mnemic.turns WHERE tenant_id = $1 AND embedded_at > recorded_at"
    made = {row["id"] for row in await seen.fetch(late, scope.tenant.id)}
    assert made == {one.id for one in receipts[:2]}, "nothing of it is in the others"


async def test_a_turn_that_is_forgotten_meanwhile_is_taken_in_by_none(
    memory: MemoryManager,
    settings: MemorySettings,
    scope: Scope,
    seen: asyncpg.Connection,
    embedder: Embedder,
) -> None:
    session = scope.session("s")
    told = await memory.sessions.append(a_conversation(TALK[:2]), scope=session)
    held = Held(embedder)

    async with MemoryManager(Wiring(settings, clock=TickingClock(), embedder=held)) as slow:
        held.gate.close()
        waiting = asyncio.create_task(slow.sessions.append([a_turn(TALK[2])], scope=session))
        await held.gate.reached.wait()
        await memory.forget([told[1].id], scope=scope.session("s"))
        held.gate.open()
        [receipt] = await waiting

    assert receipt.vector is VectorState.PENDING
    await assert_windows(seen, scope, embedder)


async def test_the_worker_makes_what_an_outage_left_out(
    memory: MemoryManager,
    wordless: MemoryManager,
    scope: Scope,
    seen: asyncpg.Connection,
    embedder: Embedder,
) -> None:
    session = scope.session("s")
    await memory.sessions.append(a_conversation(TALK[:2]), scope=session)

    receipts = await wordless.sessions.append([a_turn(text) for text in TALK[2:]], scope=session)

    assert {one.vector for one in receipts} == {VectorState.PENDING}
    await assert_windows(seen, scope, embedder, without=len(TALK) - 2)
    await memory.maintenance.embed_missing()
    await assert_windows(seen, scope, embedder)


async def test_a_session_that_ended_before_the_worker_came_is_embedded_all_the_same(
    memory: MemoryManager,
    wordless: MemoryManager,
    scope: Scope,
    seen: asyncpg.Connection,
    embedder: Embedder,
) -> None:
    session = scope.project("p").session("s")
    await wordless.sessions.append(a_conversation(TALK), scope=session)
    await wordless.sessions.end(scope=session)

    await memory.maintenance.embed_missing()

    await assert_windows(seen, scope, embedder)
    found = await memory.recall("Since May", scope=scope.project("p"), memory_types=("episodic",))
    assert "Assistant: Since May." in {hit.text for hit in found.hits}


@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended"])
async def test_a_forgotten_turn_goes_from_the_vectors_of_the_two_after_it(
    memory: MemoryManager,
    wordless: MemoryManager,
    scope: Scope,
    seen: asyncpg.Connection,
    embedder: Embedder,
    *,
    ended: bool,
) -> None:
    session = scope.session("s")
    told = await memory.sessions.append(a_conversation(TALK), scope=session)
    if ended:
        await memory.sessions.end(scope=session)
    [secret] = await embedder.embed([f"Assistant: {SECRET}"])
    before = await vectors_of(seen, scope)

    await wordless.forget([told[1].id], scope=scope if ended else session)

    stored = await vectors_of(seen, scope)
    assert [one.id for one in told if one.id in stored and stored[one.id] is None] == [
        told[2].id,
        told[3].id,
    ]
    assert await due(seen, scope) == [told[2].id, told[3].id]
    await memory.maintenance.embed_missing()
    await assert_windows(seen, scope, embedder)
    after = await vectors_of(seen, scope)
    for place in (2, 3):
        falls = near(before[told[place].id], secret) - near(after[told[place].id], secret)
        assert falls > 0.1, "it is near through its neighbour"
    assert after[told[5].id] == before[told[5].id]


@pytest.mark.parametrize(("words", "goes"), [(SHORT_WORDS_MAX, True), (SHORT_WORDS_MAX + 1, False)])
async def test_only_short_turns_lose_their_vector_with_what_is_forgotten(
    memory: MemoryManager,
    wordless: MemoryManager,
    scope: Scope,
    seen: asyncpg.Connection,
    words: int,
    *,
    goes: bool,
) -> None:
    session = scope.session("s")
    told = await memory.sessions.append(
        a_conversation([SECRET, " ".join(["word"] * words), LONG]), scope=session
    )

    await wordless.forget([told[0].id], scope=session)

    assert await due(seen, scope) == ([told[1].id] if goes else [])


async def test_their_past_vectors_go_with_it_too(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, embedder: Embedder
) -> None:
    told = await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))
    [secret] = await embedder.embed([SECRET])
    model = (await memory._tools.live_model()).id
    await seen.set_type_codec(
        "halfvec", schema="public", encoder=encode_halfvec, decoder=bytes, format="binary"
    )
    for turn in (told[0], told[2], told[3], told[4]):
        await seen.execute(
            "INSERT INTO mnemic.memory_history (tenant_id, id, memory_id, place, known_until,"
            " before) VALUES ($1, $2, $2, 1, now(), '{}')",
            *(scope.tenant.id, turn.id),
        )
        await seen.execute(
            "INSERT INTO mnemic.past_vectors (tenant_id, change_id, model_id, embedding)"
            " VALUES ($1, $2, $3, $4)",
            *(scope.tenant.id, turn.id, model, secret),
        )

    await memory.forget([told[1].id], scope=scope.session("s"))

    left = await seen.fetch(
        "SELECT change_id FROM mnemic.past_vectors WHERE tenant_id = $1", scope.tenant.id
    )
    assert {row["change_id"] for row in left} == {told[0].id, told[4].id}
    assert await seen.fetchval(HISTORY, scope.tenant.id) == 2


async def test_whoever_forgets_makes_them_anew_without_it_if_the_model_is_there(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, embedder: Embedder
) -> None:
    session = scope.session("s")
    told = await memory.sessions.append(a_conversation(TALK), scope=session)

    await memory.forget([told[1].id], scope=session)

    await assert_windows(seen, scope, embedder)


async def test_a_window_closes_over_what_is_gone(
    memory: MemoryManager,
    wordless: MemoryManager,
    scope: Scope,
    seen: asyncpg.Connection,
    embedder: Embedder,
) -> None:
    talk = [f"Word number {at}?" for at in range(8)]
    session = scope.session("s")
    told = await memory.sessions.append(a_conversation(talk), scope=session)

    await wordless.forget([told[at].id for at in (1, 3, 4)], scope=session)
    await memory.sessions.append([a_turn("And now?")], scope=session)
    assert await due(seen, scope) == [told[at].id for at in (2, 5, 6)]
    await memory.maintenance.embed_missing()

    await assert_windows(seen, scope, embedder)


async def test_a_vector_that_is_made_anew_is_of_the_past_too(
    memory: MemoryManager, scope: Scope, clock: TickingClock
) -> None:
    session = scope.session("s")
    told = await memory.sessions.append(a_conversation(TALK), scope=session)
    then = clock()
    await memory.forget([told[1].id], scope=session)
    await memory.maintenance.embed_missing()

    now = await memory.recall("Since May?", scope=session, floor=0.0)
    past = await memory.recall("Since May?", scope=session, floor=0.0, known_at=then, as_of=then)

    assert [hit.id for hit in past.hits] == [hit.id for hit in now.hits]
    assert [hit.near_place for hit in past.hits] == [hit.near_place for hit in now.hits]


async def test_what_the_release_before_embedded_answers_until_it_is_made_anew(
    memory: MemoryManager,
    scope: Scope,
    seen: asyncpg.Connection,
    embedder: Embedder,
) -> None:
    told = await memory.sessions.append(a_conversation(TALK), scope=scope.session("s"))
    [alone] = await embedder.embed([f"User: {TALK[2]}"])
    await seen.set_type_codec(
        "halfvec", schema="public", encoder=encode_halfvec, decoder=bytes, format="binary"
    )
    await seen.execute(
        "UPDATE mnemic.turn_vectors SET embedding = $2 WHERE memory_id = $1", told[2].id, alone
    )
    await seen.execute(
        "UPDATE mnemic.turns SET vector_recipe = NULL WHERE tenant_id = $1", scope.tenant.id
    )

    found = await memory.recall("Since when?", scope=scope.session("s"))
    kept = await memory.maintenance.embed_missing()
    again = await memory.maintenance.embed_missing()

    assert told[2].id in {hit.id for hit in found.hits if hit.near_place is not None}
    assert (kept.done >= 4, again.done) == (True, 0), "the four short ones behind the first"
    await assert_windows(seen, scope, embedder)
    assert await seen.fetchval(HISTORY, scope.tenant.id) == 0, "it stands for all of its past"


async def test_the_worker_keeps_nothing_that_is_not_so_any_more(
    settings: MemorySettings,
    memory: MemoryManager,
    wordless: MemoryManager,
    scope: Scope,
    seen: asyncpg.Connection,
    embedder: Embedder,
) -> None:
    session = scope.session("s")
    told = await wordless.sessions.append(a_conversation(TALK), scope=session)
    held = Held(embedder)

    async with MemoryManager(Wiring(settings, clock=TickingClock(), embedder=held)) as worker:
        held.gate.close()
        running = asyncio.create_task(worker.maintenance.embed_missing())
        await held.gate.reached.wait()
        await memory.forget([told[1].id], scope=session)
        held.gate.open()
        await running

    await memory.maintenance.embed_missing()
    await assert_windows(seen, scope, embedder)


async def test_appending_forgetting_ending_and_the_worker_at_once_end_right(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, embedder: Embedder
) -> None:
    for number in range(6):
        project = scope.project(f"p{number}")
        session = project.session("s")
        told = await memory.sessions.append(a_conversation(TALK * 2), scope=session)

        async def forget(at: int, place: Scope = session, ids: list[Receipt] = told) -> None:
            await asyncio.sleep(at / 500)
            with suppress(Forbidden):  # the session has ended, and they stand above
                await memory.forget([ids[at].id], scope=place)

        async def add(at: int, place: Scope = session) -> None:
            with suppress(Conflict):
                await memory.sessions.append([a_turn(f"Number {at}?")], scope=place)

        await asyncio.gather(
            *(forget(at) for at in (1, 3, 4, 8)),
            *(add(at) for at in range(6)),
            memory.maintenance.embed_missing(),
            *([memory.sessions.end(scope=session)] if number % 2 else []),
        )

    await assert_windows(seen, scope, embedder, without=len(await due(seen, scope)))
    await memory.maintenance.embed_missing()
    await assert_windows(seen, scope, embedder)


@pytest.mark.parametrize("seed", range(4))
async def test_of_many_that_go_at_once_the_two_after_each_lose_their_vectors(
    memory: MemoryManager, scope: Scope, seen: asyncpg.Connection, seed: int
) -> None:
    """Whatever lies between them; and a second time, when some are gone already."""
    here = scope.session("s")
    await memory.sessions.append([a_turn(f"Number {n}") for n in range(40)], scope=here)
    numbers = random.Random(seed)
    standing, due = list(range(40)), set[int]()

    for _ in range(2):
        gone = set(numbers.sample(standing, numbers.randint(1, 12)))
        left = [seq for seq in standing if seq not in gone]
        due |= {
            seq for at in gone for seq in [after for after in left if after > at][:TURNS_BEFORE_MAX]
        }
        await seen.execute(
            "DELETE FROM mnemic.turns WHERE tenant_id = $1 AND seq = ANY($2::int[])",
            *(scope.tenant.id, list(gone)),
        )
        standing, due = left, due - gone

    rows = await seen.fetch(
        "SELECT t.seq, t.needs_vector, v.memory_id IS NULL AS lacking FROM mnemic.turns t"
        "  LEFT JOIN mnemic.turn_vectors v ON v.tenant_id = t.tenant_id AND v.memory_id = t.id"
        " WHERE t.tenant_id = $1",
        scope.tenant.id,
    )
    assert {row["seq"] for row in rows} == set(standing)
    assert {row["seq"] for row in rows if row["needs_vector"]} == due
    assert {row["seq"] for row in rows if row["lacking"]} == due


async def test_an_embedder_is_not_asked_for_nothing(
    settings: MemorySettings, embedder: Embedder, scope: Scope
) -> None:
    asked: list[int] = []

    class Counting:
        """A host's embedder, which may take a call without texts for a mistake."""

        signature = embedder.signature

        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            asked.append(len(texts))
            return await embedder.embed(texts)

        async def close(self) -> None:
            """Nothing is open."""

    async with MemoryManager(Wiring(settings, embedder=Counting())) as memory:
        told = await memory.sessions.append(
            a_conversation(["Red.", "Noted."]), scope=scope.session("s")
        )
        forgotten = await memory.forget([told[1].id], scope=scope.session("s"))

    assert forgotten.counts["turn"] == 1
    assert asked
    assert 0 not in asked
