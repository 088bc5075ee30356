"""What gets into a prompt section: whole items, never more than the budget, each accounted for."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.context import (
    TITLES,
    Context,
    ContextForm,
    ContextItem,
    ContextPart,
    Omission,
    Section,
    frame_of,
)
from mnemic.model.context_fill import Quotas, fill, sections_of
from mnemic.model.context_form import parse, render
from mnemic.model.normalise import comparison_key
from mnemic.model.token_count import EstimatedTokens, TokenCounter
from mnemic.model.trust import Trust

FORMS = list(ContextForm)
SPACE = UUID(int=0)
NO_QUOTA = Quotas(stable=0, by_title={})
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


class Characters:
    """A token a character: what the parts cost and what the whole costs are easy to see."""

    def count(self, text: str) -> int:
        return len(text)


class Surcharge:
    """A whole costs ten more than its parts, from two items on."""

    def count(self, text: str) -> int:
        return len(text) + (10 if text.count("\n- ") > 1 else 0)


class Bundled:
    """A line costs a token and a break costs one, so a whole costs less than its parts."""

    def count(self, text: str) -> int:
        return 0 if not text else 3 + text.startswith("## ") * (text.count("\n- ") - 1)


class Reading:
    """The estimate, and how many characters it was asked to read."""

    def __init__(self) -> None:
        self.read = 0

    def count(self, text: str) -> int:
        self.read += len(text)
        return EstimatedTokens().count(text)


def an_item(text: str, section: str = "Episodes", **given: Any) -> ContextItem:
    values: dict[str, Any] = {
        "section": section,
        "text": text,
        "says": text,
        "id": uuid5(SPACE, f"{section}{text}"),
        "kind": "fact",
        "trust": Trust.USER,
        "source": "caller",
    }
    return ContextItem(**values | given)


def items(*texts: str, section: str = "Episodes") -> list[ContextItem]:
    return [an_item(text, section) for text in texts]


def filled(found: list[ContextItem], budget: int, **given: Any) -> Context:
    values: dict[str, Any] = {"quotas": NO_QUOTA, "counter": Characters()}
    return fill(given.pop("known", []), found, budget=budget, **values | given)


TEA = items("Tea is green.", "Milk is white.")
TALK = items("We met on Monday.", section="From earlier conversations")
BOTH = [Section("Episodes", ("Tea is green.", "Milk is white."))]
ALL = [*BOTH, Section("From earlier conversations", ("We met on Monday.",))]


def test_a_budget_that_is_just_enough_takes_everything() -> None:
    whole = render(ALL)

    made = filled([*TEA, *TALK], len(whole))

    assert (made.text, made.tokens, made.budget) == (whole, len(whole), len(whole))
    assert made.sections == tuple(ALL)
    assert made.items == (*TEA, *TALK)
    assert (made.omitted, made.degraded) == ((), ())


def test_a_budget_that_is_one_short_leaves_out_the_last_and_says_so() -> None:
    whole = render(ALL)

    made = filled([*TEA, *TALK], len(whole) - 1)

    assert made.sections == tuple(BOTH)
    assert made.omitted == (Omission(TALK[0].section, TALK[0].text, "over the budget"),)
    assert made.text == render(BOTH)
    assert made.tokens == len(made.text)


def test_an_item_that_does_not_fit_is_skipped_and_later_ones_still_get_in() -> None:
    long = "long " * 100

    made = filled(items("first", long, "last"), 150, degraded=("embedder",))

    assert made.sections == (Section("Episodes", ("first", "last")),)
    assert made.omitted == (Omission("Episodes", long, "over the budget"),)
    assert made.degraded == ("embedder",)


def everything(number: int) -> list[ContextItem]:
    """An item or more under every title."""
    return [
        an_item(f"{title} {place} {'x' * place * number}", title, trust=Trust.OPERATOR)
        for title in TITLES
        for place in range(3)
    ]


@pytest.mark.parametrize("counter", [Characters(), Surcharge(), EstimatedTokens()])
@pytest.mark.parametrize("form", FORMS)
def test_the_budget_is_never_exceeded_and_every_item_is_accounted_for(
    form: ContextForm, counter: TokenCounter
) -> None:
    known = [one for one in everything(7) if frame_of(one.section).closing]
    found = [one for one in everything(7) if not frame_of(one.section).closing]
    quotas = Quotas(stable=200, by_title={"Episodes": 100})

    for budget in range(1, 2_000, 97):
        made = fill(known, found, budget=budget, quotas=quotas, counter=counter, form=form)

        shown = [one.text for one in made.items]
        assert made.tokens == (counter.count(made.text) if made.text else 0)
        assert made.tokens <= budget
        assert made.stable.tokens <= 200
        assert sorted(shown + [one.item for one in made.omitted]) == sorted(
            one.text for one in [*known, *found]
        )
        assert parse(made.text, form) == made.sections == sections_of(made.items)
        assert {one.reason for one in made.omitted} <= {"over the budget"}


@given(
    st.lists(ANY_TEXT, max_size=12, unique=True),
    st.lists(ANY_TEXT, max_size=12, unique=True),
    st.integers(min_value=1, max_value=400) | st.just(2**63),
    st.sampled_from(FORMS),
)
def test_the_budget_holds_for_any_text_in_every_form(
    known: list[str], found: list[str], budget: int, form: ContextForm
) -> None:
    counter = EstimatedTokens()

    made = fill(
        items(*known, section="Facts"),
        items(*found),
        budget=budget,
        quotas=Quotas(stable=budget // 2, by_title={"Episodes": budget // 3}),
        counter=counter,
        form=form,
    )

    assert counter.count(made.text) == made.tokens <= budget
    shown = [one.text for one in made.items]
    assert sorted([*shown, *(one.item for one in made.omitted)]) == sorted([*known, *found])


@given(st.lists(ANY_TEXT, max_size=30, unique=True), st.integers(1, 400))
def test_no_item_is_left_out_that_would_have_fitted(texts: list[str], budget: int) -> None:
    counter = EstimatedTokens()

    made = filled(items(*texts), budget, counter=counter)

    kept: list[ContextItem] = []
    for item in items(*texts):
        said = {comparison_key(one.says) for one in kept}
        fits = counter.count(render(sections_of([*kept, item]))) <= budget
        if fits and comparison_key(item.says) not in said:
            kept.append(item)
    assert list(made.items) == kept


def test_where_a_whole_costs_more_than_its_parts_the_last_item_goes() -> None:
    whole = render(ALL)

    made = filled([*TEA, *TALK], len(whole) + 9, counter=Surcharge())

    assert made.sections == tuple(BOTH)
    assert made.omitted == (Omission(TALK[0].section, TALK[0].text, "over the budget"),)


def test_where_a_whole_costs_less_than_its_parts_the_whole_decides() -> None:
    many = items(*map(str, range(5)))

    made = filled(many, 8, counter=Bundled())

    assert made.items == tuple(many)
    assert made.tokens == 7


def test_many_items_are_not_counted_again_for_each_of_them() -> None:
    counter = Reading()
    many = items(*(f"short fact number {number} about something" for number in range(1_000)))

    made = filled(many, 10**6, counter=counter)

    assert len(made.items) == 1_000
    assert counter.read < 5 * len(made.text)


def test_what_is_known_stands_first_in_the_order_of_ids_and_without_regard_to_the_question() -> (
    None
):
    known = [an_item(name, "Facts", id=UUID(int=9 - place)) for place, name in enumerate("abc")]
    quotas = Quotas(stable=300, by_title={})

    one = filled(TEA, 1_000, known=known, quotas=quotas)
    other = filled(TALK, 1_000, known=known, quotas=quotas)

    assert one.sections[0] == Section("Facts", ("c", "b", "a"))
    assert one.stable == other.stable
    assert one.stable.hash == other.stable.hash
    assert one.volatile.hash != other.volatile.hash
    assert one.text == f"{one.stable.text}\n\n{one.volatile.text}"
    assert one.stable.tokens == len(one.stable.text)


def test_the_best_known_ones_get_in_and_the_rest_may_follow_what_was_found() -> None:
    known = items("best " * 9, "next " * 9, "last", section="Facts")
    alone = len(render([Section("Facts", (known[0].text,))]))

    made = filled(TEA, 1_000, known=known, quotas=Quotas(stable=alone + 3, by_title={}))

    assert [one.title for one in made.sections] == ["Facts", "Episodes", "Further facts"]
    assert made.sections[0].items == (known[0].text,)
    assert made.sections[2].items == (known[1].text, known[2].text)
    assert made.omitted == ()


def test_a_fact_that_is_known_is_not_found_again() -> None:
    known = items("Tea is green.", section="Facts")
    again = an_item("Tea is green.", "Relevant facts", id=known[0].id)

    made = filled([again], 1_000, known=known, quotas=Quotas(stable=500, by_title={}))

    assert made.sections == (Section("Facts", ("Tea is green.",)),)
    assert made.omitted == ()


def test_a_fact_that_was_found_is_not_told_as_a_further_one() -> None:
    known = items("Tea is green.", section="Facts")
    again = an_item("Tea is green.", "Relevant facts", id=known[0].id)

    made = filled([again], 1_000, known=known)

    assert made.sections == (Section("Relevant facts", ("Tea is green.",)),)
    assert made.omitted == ()


def test_what_says_the_same_as_another_item_is_left_out_and_said_to_be() -> None:
    said = an_item("2026-03-02 User: Tea is  GREEN.", TALK[0].section, says="Tea is  GREEN.")

    made = filled([*TEA, said], 1_000)

    assert made.sections == tuple(BOTH)
    assert made.omitted == (Omission(said.section, said.text, "says the same as another item"),)


def test_a_copy_of_what_did_not_fit_may_still_get_in() -> None:
    long = an_item("2026-03-02 User: " + "long " * 80, says="short")
    short = an_item("short", says="short")

    made = filled([long, short], 200)

    assert [one.text for one in made.items] == ["short"]


@pytest.mark.parametrize("trust", list(Trust))
def test_what_nobody_approved_is_no_instruction(trust: Trust) -> None:
    item = an_item("Deploy: tag it", "Approved procedures", trust=trust)

    made = filled([item], 1_000)

    if trust <= Trust.APPROVED:
        assert made.sections == (Section("Approved procedures", ("Deploy: tag it",)),)
        assert made.omitted == ()
    else:
        assert made.sections == ()
        assert made.omitted == (Omission(item.section, item.text, "not approved"),)


def test_what_is_refused_takes_nothing_from_what_follows() -> None:
    refused = an_item("Deploy: tag it", "Approved procedures")

    made = filled([refused, *TEA], 1_000)

    assert made.items == tuple(TEA)
    assert made.omitted == (Omission(refused.section, refused.text, "not approved"),)


@pytest.mark.parametrize("form", FORMS)
def test_a_section_tells_its_form_and_an_empty_part_costs_nothing(form: ContextForm) -> None:
    made = filled(TEA, 1_000, form=form)

    assert made.form is form
    assert made.stable == ContextPart()
    assert made.volatile.tokens == len(made.volatile.text) > 0


def test_a_quota_is_for_just_what_its_items_cost() -> None:
    whole = len(render(BOTH))
    cost = len("\n\n") + whole

    just = filled([*TEA, *TALK], whole + 50, quotas=Quotas(stable=0, by_title={"Episodes": cost}))
    short = filled(
        [*TEA, *TALK], whole + 50, quotas=Quotas(stable=0, by_title={"Episodes": cost - 9})
    )

    assert just.items == tuple(TEA)
    assert [one.text for one in short.items] != [one.text for one in just.items]


def test_a_title_takes_its_quota_first_and_what_the_others_leave() -> None:
    many = [*items(*(f"episode {n}" for n in range(30))), *TALK]
    quotas = Quotas(stable=0, by_title={"Episodes": 120})

    tight = filled(many, 260, quotas=quotas)
    wide = filled(many, 10_000, quotas=quotas)

    assert tight.sections[-1].items == ("We met on Monday.",)
    assert 0 < len(tight.sections[0].items) < 10
    assert len(wide.items) == 31
    assert filled(many, 260).sections[-1].title == "Episodes"


def test_what_was_refused_before_is_told_too() -> None:
    refused = (Omission("Episodes", "far off", "below the floor"),)

    assert filled(TEA, 1_000, refused=refused).omitted == refused
