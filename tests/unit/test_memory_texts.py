"""What is shown of a memory, by its kind."""

from __future__ import annotations

import pytest
from held_memories import a_held_episode, a_held_fact, a_held_procedure, a_held_turn

from mnemic.model.procedure import Step
from mnemic.model.recall import MemoryItem, text_of


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        (a_held_turn(actor="Ada", text="Tea is green."), "Ada: Tea is green."),
        (
            a_held_turn(actor="Ada", text="Look.", caption="a cup"),
            "Ada: Look. [image: a cup]",
        ),
        (a_held_episode(title="Deploy", summary="It went well."), "Deploy: It went well."),
        (a_held_fact(content="Ada likes tea."), "Ada likes tea."),
        (
            a_held_procedure(name="Deploy", steps=(Step(action="tag it"), Step(action="push it"))),
            "Deploy: tag it; push it",
        ),
    ],
)
def test_a_memory_is_shown_as_one_text(memory: MemoryItem, text: str) -> None:
    assert text_of(memory) == text
