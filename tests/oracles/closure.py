"""*Scope closure*: with a word planted in every scope, each shows those of its own chain alone.

The long proof plays sequences of every method against an oracle: `tests/isolation`. This is the
same question asked once, of a state that a test has made.
"""

from __future__ import annotations

from collections.abc import Mapping

from proof.canaries import token, tokens_in

from mnemic.manager import MemoryManager
from mnemic.model.scope import Scope
from mnemic.testing import a_fact
from oracles.reading import shown

__all__ = ["assert_closed", "plant"]


async def plant(memory: MemoryManager, scopes: list[Scope]) -> dict[str, Scope]:
    """A word of its own in each kind of memory of each scope; where each word stands."""
    places = {}
    for number, scope in enumerate(scopes, start=1):
        word = token(number)
        places[word] = scope
        await memory.store_fact(a_fact(object=word), scope=scope)
        for text, kind in (
            (f"It was {word}.", "episodic"),
            (f"Do {word}\n1. {word}", "procedural"),
        ):
            await memory.remember(text, scope=scope, memory_type=kind)
        await memory.at(scope).working.set("word", word)
    return places


async def assert_closed(memory: MemoryManager, places: Mapping[str, Scope], query: str) -> None:
    """From each scope its own chain's words are shown, and no others, in whatever way one reads.

    The word of the scope itself must be there: a memory that shows nothing proves nothing.
    """
    for viewer in dict.fromkeys(places.values()):
        answers = await shown(memory, viewer, query)
        allowed = {word for word, place in places.items() if place in viewer.chain}
        own = {word for word, place in places.items() if place == viewer}
        for way, text in answers.items():
            assert tokens_in(text) <= allowed, f"{way} shows what stands elsewhere"
        assert own <= set().union(*(tokens_in(text) for text in answers.values())), "shows nothing"
        assert tokens_in(answers["working"]) == own, "working memory is another's"
