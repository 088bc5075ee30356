"""Which items get into a prompt section: whole ones, within a budget of what the text costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from mnemic.model.context import (
    APPROVED,
    FACTS_FURTHER,
    FOUND,
    KNOWN,
    TITLES,
    Context,
    ContextForm,
    ContextItem,
    ContextPart,
    Omission,
    Section,
    frame_of,
)
from mnemic.model.context_form import join, part_of, pieces
from mnemic.model.normalise import comparison_key
from mnemic.model.token_count import TokenCounter
from mnemic.model.trust import Trust

__all__ = ["Quotas", "fill", "sections_of"]

OVER = "over the budget"
NOT_APPROVED = "not approved"
TWICE = "says the same as another item"
# By how much an item may cost less within a text than by itself, in tokens.
MERGED_MAX = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """How many tokens the stable part has at most, and each title of the volatile one at first.

    What they leave is filled by whatever is left, in order; the stable part takes none of it, so
    that it does not depend on the question.
    """

    stable: int
    by_title: Mapping[str, int]


def fill(
    known: Sequence[ContextItem],
    found: Sequence[ContextItem],
    *,
    budget: int,
    quotas: Quotas,
    counter: TokenCounter,
    form: ContextForm = ContextForm.MARKDOWN,
    refused: Sequence[Omission] = (),
    degraded: tuple[str, ...] = (),
) -> Context:
    """As many items as fit, the most useful first; one that does not is skipped and named.

    `known` are the surest facts, best first; those that are shown stand in the order of their ids.
    `found` are in the order of their titles, the best of each first. The budget holds for the text
    of the whole in `form`, frames included.
    """
    pieces_counter = _Remembering(counter)
    head = _Draft(form, pieces_counter, min(quotas.stable, budget))
    for item in known:
        head.offer(item, head.cost(item))
    shown = {item.id for item in head.kept}
    rest = [item for item in found if item.id not in shown]
    told = shown | {item.id for item in rest}
    rest += [replace(item, section=FACTS_FURTHER) for item in known if item.id not in told]
    draft = _Draft(form, pieces_counter, budget, head=head.kept)
    omitted = [*refused, *_fill(draft, rest, quotas)]
    tokens = draft.count()
    while tokens > budget:  # a counter for which a whole costs more than its parts
        omitted.append(_omission(draft.kept.pop(), OVER))
        tokens = draft.count()
    stable, volatile = draft.parts()
    return Context(
        text=draft.text(),
        tokens=tokens,
        budget=budget,
        form=form,
        stable=draft.part(stable),
        volatile=draft.part(volatile),
        sections=sections_of(draft.kept),
        items=tuple(_in_order(draft.kept)),
        omitted=tuple(omitted),
        degraded=degraded,
    )


def sections_of(items: Sequence[ContextItem]) -> tuple[Section, ...]:
    """The items under their titles, in the order that sections have; facts known by their ids."""
    return tuple(
        Section(title, tuple(item.text for item in held))
        for title, held in groupby(_in_order(items), key=lambda item: item.section)
    )


def _in_order(items: Sequence[ContextItem]) -> list[ContextItem]:
    def place(numbered: tuple[int, ContextItem]) -> tuple[int, int]:
        number, item = numbered
        is_known = frame_of(item.section) is KNOWN
        title = TITLES.index(item.section) if item.section in TITLES else len(TITLES)
        return title, item.id.int if is_known else number

    return [item for _, item in sorted(enumerate(items), key=place)]


def _fill(draft: _Draft, items: Sequence[ContextItem], quotas: Quotas) -> list[Omission]:
    """What of `items` fits is in the draft: first what its title has room for, then the others."""
    omitted: list[Omission] = []
    waiting: list[ContextItem] = []
    spent: dict[str, int] = {}
    for item in items:
        title = item.section
        if frame_of(title).is_instruction and item.trust > Trust.APPROVED:
            omitted.append(_omission(item, NOT_APPROVED))
            continue
        cost = draft.cost(item)
        after = spent.get(title, 0) + cost
        has_room = title not in quotas.by_title or after <= quotas.by_title[title]
        if has_room and draft.offer(item, cost):
            spent[title] = after
        else:
            waiting.append(item)
    return omitted + [
        _omission(item, OVER if draft.is_new(item) else TWICE)
        for item in waiting
        if not draft.offer(item, draft.cost(item))
    ]


class _Remembering:
    """Counts a piece once; titles, frames and what is offered again cost no second reading."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = self.counter.count(text)
        return self._known[text]


class _Draft:
    """What is in so far, and the most that it may cost."""

    def __init__(
        self,
        form: ContextForm,
        counter: _Remembering,
        budget: int,
        *,
        head: Sequence[ContextItem] = (),
    ) -> None:
        self._form = form
        self._counter = counter
        self.budget = budget
        self.kept: list[ContextItem] = list(head)
        self._said = {comparison_key(item.says) for item in head}
        self._used = self.count()
        self._is_exact = True

    def is_new(self, item: ContextItem) -> bool:
        """Whether nothing that is in says the same."""
        return comparison_key(item.says) not in self._said

    def cost(self, item: ContextItem) -> int:
        """What the item costs, with the title and the frame that it is the first of."""
        line, titled, framed = pieces(item.section, item.text, self._form)
        cost = self._counter.count(line)
        if all(one.section != item.section for one in self.kept):
            cost += self._counter.count(titled)
        frame = frame_of(item.section)
        if all(frame_of(one.section) is not frame for one in self.kept):
            cost += self._counter.count(framed)
        return cost

    def offer(self, item: ContextItem, cost: int) -> bool:
        """The item, which costs about `cost`, is in if it is new and there is room for it.

        The text is counted whole only when its parts together might be too much, for it costs
        hardly more than they do.
        """
        if not self.is_new(item):
            return False
        if self._used + cost > self.budget and not self._is_exact:
            self._used, self._is_exact = self.count(), True
        after, is_exact = self._used + cost, False
        if after - MERGED_MAX > self.budget:
            return False
        self.kept.append(item)
        if after > self.budget:
            after, is_exact = self.count(), True
        if after > self.budget:
            self.kept.pop()
            return False
        self._used, self._is_exact = after, is_exact
        self._said.add(comparison_key(item.says))
        return True

    def parts(self) -> tuple[str, str]:
        """The text of the stable and of the volatile part."""
        sections = sections_of(self.kept)
        return (
            part_of(sections, (KNOWN,), self._form),
            part_of(sections, (APPROVED, FOUND), self._form),
        )

    def text(self) -> str:
        """The text of the whole."""
        return join(*self.parts(), self._form)

    def part(self, text: str) -> ContextPart:
        """A part with what it costs by itself."""
        return ContextPart(text=text, tokens=self._counter.count(text) if text else 0)

    def count(self) -> int:
        """What the text of the whole costs; nothing without items."""
        return self._counter.counter.count(self.text()) if self.kept else 0


def _omission(item: ContextItem, reason: str) -> Omission:
    return Omission(item.section, item.text, reason)
