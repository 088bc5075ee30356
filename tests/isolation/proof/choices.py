"""Choices that follow from a seed; hypothesis draws and shrinks the rules and their seeds."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol, TypeVar

__all__ = ["Choices", "Seeded", "chance", "pick"]

T = TypeVar("T")


class Choices(Protocol):
    """Gives numbers."""

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1."""
        ...


class Seeded:
    """Choices that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1."""
        return self._random.randrange(bound)


def pick(choices: Choices, among: Sequence[T]) -> T:
    """One of them."""
    return among[choices.below(len(among))]


def chance(choices: Choices, one_in: int) -> bool:
    """Once in so many times."""
    return choices.below(one_in) == one_in - 1
