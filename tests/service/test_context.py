from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import InvalidInput, MemoryManager, Scope
from mnemic.model.context import CLOSING, HEADING, Section, fill, parse, render
from mnemic.model.token_count import EstimatedTokens
from mnemic.settings import MemorySettings
from mnemic.testing import a_conversation
from mnemic.wiring import Wiring

COUNTER = EstimatedTokens()
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
HOSTILE = st.sampled_from(
    ['\n### Facts\n- "x"', CLOSING, HEADING, '"', "\\", '\u2028- "x"', "\r\n- ", "{x} {}", "```"]
)


async def test_what_is_known_stands_in_the_section(memory: MemoryManager, scope: Scope) -> None:
    await memory.remember("Deploys are frozen on Fridays.", scope=scope)
    talk = a_conversation(["The support rota is on call on Fridays.", "Understood."])
    await memory.sessions.append(talk, scope=scope.session("s"))
    await memory.sessions.end(scope=scope.session("s"))

    made = await memory.context("can I deploy on Friday?", scope=scope, budget=300)

    assert made.text.startswith(HEADING)
    assert made.text.endswith(CLOSING)
    assert "Deploys are frozen on Fridays." in made.sections[0].items
    assert made.tokens <= made.budget == 300
    assert made.degraded == ()


async def test_nothing_known_is_an_empty_section(memory: MemoryManager, scope: Scope) -> None:
    made = await memory.context("can I deploy?", scope=scope)

    assert (made.text, made.tokens, made.sections) == ("", 0, ())


async def test_a_missed_deadline_gives_an_empty_section_that_says_so(
    settings: MemorySettings, embedder: object, scope: Scope
) -> None:
    hasty = settings.model_copy(
        update={"context": settings.context.model_copy(update={"deadline_ms": 1})}
    )

    async with MemoryManager(Wiring(hasty, embedder=embedder)) as memory:
        made = await memory.context("can I deploy?", scope=scope)

    assert made.text == ""
    assert made.degraded == ("the deadline of 1 ms passed",)


@pytest.mark.parametrize("budget", [0, -5, 2.5, True])
async def test_a_budget_that_is_none_is_refused(
    memory: MemoryManager, scope: Scope, budget: int
) -> None:
    with pytest.raises(InvalidInput, match="budget"):
        await memory.context("can I deploy?", scope=scope, budget=budget)


@given(
    st.lists(
        st.lists(ANY_TEXT | HOSTILE, min_size=1, max_size=6).map(tuple), min_size=1, max_size=4
    )
)
def test_no_item_can_leave_its_frame(groups: list[tuple[str, ...]]) -> None:
    sections = tuple(Section(f"Section {n}", items) for n, items in enumerate(groups))

    text = render(sections)

    assert parse(text) == sections
    assert len(text.splitlines()) == 3 + sum(2 + len(items) for items in groups)


@given(
    st.lists(ANY_TEXT | HOSTILE, max_size=12).map(tuple),
    st.integers(min_value=1, max_value=400) | st.just(2**63),
)
def test_the_budget_holds_for_the_rendered_text(items: tuple[str, ...], budget: int) -> None:
    made = fill([Section("Facts", items)], budget=budget, counter=COUNTER)

    assert COUNTER.count(made.text) == made.tokens <= budget
    kept = [item for section in made.sections for item in section.items]
    assert sorted([*kept, *(left.item for left in made.omitted)]) == sorted(items)


def test_an_item_that_does_not_fit_is_skipped_and_the_next_one_kept() -> None:
    items = ("short", "long " * 200, "also short")

    made = fill([Section("Facts", items)], budget=60, counter=COUNTER)

    assert made.sections == (Section("Facts", ("short", "also short")),)
    assert [(left.item, left.reason) for left in made.omitted] == [(items[1], "over the budget")]


@pytest.mark.parametrize(
    "text", ["<|endoftext|>", "[SEP]", "é" * 50, "日本語" * 20, "🚀", "\n\n\n"]
)
def test_every_text_costs_something(text: str) -> None:
    assert COUNTER.count(text) >= 1


def test_adding_text_never_costs_less() -> None:
    text = "The quick brown fox, 2026-03-02: 12,345 items — 日本語 и русский."

    counts = [COUNTER.count(text[:end]) for end in range(len(text) + 1)]

    assert counts == sorted(counts)
    assert counts[0] == 0


class Counting:
    """The estimate, and how many characters it was asked to read."""

    def __init__(self, surcharge: int = 0) -> None:
        self.read = 0
        self._surcharge = surcharge

    def count(self, text: str) -> int:
        self.read += len(text)
        return COUNTER.count(text) + self._surcharge * (text.count("\n- ") > 1)


def test_many_items_are_not_counted_again_for_each_of_them() -> None:
    items = tuple(f"short fact number {number} about something" for number in range(1_000))
    counter = Counting()

    made = fill([Section("Facts", items)], budget=10**6, counter=counter)

    assert made.sections == (Section("Facts", items),)
    assert counter.read < 4 * len(made.text)


@given(items=st.lists(ANY_TEXT, max_size=30), budget=st.integers(1, 400))
def test_no_item_is_left_out_that_would_have_fitted(items: list[str], budget: int) -> None:
    made = fill([Section("Facts", tuple(items))], budget=budget, counter=COUNTER)

    kept: list[str] = []
    for item in items:
        if COUNTER.count(render([Section("Facts", (*kept, item))])) <= budget:
            kept.append(item)
    assert tuple(kept) == (made.sections[0].items if made.sections else ())


def test_the_budget_holds_for_a_counter_whose_whole_costs_more_than_its_parts() -> None:
    items = ("one", "two", "three")

    made = fill([Section("Facts", items)], budget=60, counter=Counting(surcharge=50))

    assert made.tokens <= 60
    assert made.sections == (Section("Facts", ("one",)),)
