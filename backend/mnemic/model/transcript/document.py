"""A JSON document walked value by value, with the line each value stands on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from mnemic.errors import InvalidInput

__all__ = ["Document", "Twice"]

_NOT_WHITE = re.compile(r"[^ \t\r\n]|$")


class Twice(dict[str, Any]):
    """An object in which a key was given twice."""


class Document:
    """A cursor over JSON text.

    Each step raises `InvalidInput` at the first character that is not JSON, and `line` then says
    where. What was read before stays read, so a document that breaks off is kept that far.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted_to, self._line = 0, 1
        self._decoder = json.JSONDecoder(object_pairs_hook=_noticing, parse_int=str, strict=False)

    @property
    def line(self) -> int:
        """The number of the line the cursor stands on, from 1."""
        self._line += self._text.count("\n", self._counted_to, self._at)
        self._counted_to = self._at
        return self._line

    def peek(self) -> str:
        """The next character that is not white space, left where it is; empty at the end."""
        found = _NOT_WHITE.search(self._text, self._at)
        self._at = found.start() if found else len(self._text)
        return self._text[self._at : self._at + 1]

    def members(self) -> Iterator[str]:
        """Each key of the object here; the caller takes its value before asking for the next."""
        for _ in self._parts("{", "}"):
            if self.peek() != '"':
                raise self._broken("a key in quotes")
            key = self.value()
            self._take(":")
            yield key

    def elements(self) -> Iterator[int]:
        """The line of each element of the list here; the caller takes it before the next."""
        for _ in self._parts("[", "]"):
            self.peek()
            yield self.line

    def value(self) -> Any:
        """The value here, whole; integers come as text, for none is counted with."""
        self.peek()
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as fault:
            self._at = fault.pos
            raise self._broken("a value") from None
        except RecursionError:
            raise InvalidInput("is nested too deeply; flatten it", field="file") from None
        return value

    def finish(self) -> None:
        """Nothing but white space is left."""
        if self.peek():
            raise self._broken("the end")

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        if self.peek() == closing:
            self._take(closing)
            return
        while True:
            yield
            if self.peek() == closing:
                self._take(closing)
                return
            self._take(",")

    def _take(self, mark: str) -> None:
        if self.peek() != mark:
            raise self._broken(mark)
        self._at += 1

    def _broken(self, expected: str) -> InvalidInput:
        return InvalidInput(
            f"is not JSON from here on ({expected} was expected); correct it", field="file"
        )


def _noticing(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Twice(found)
