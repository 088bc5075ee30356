"""A host's own token counter, held to what a count is."""

from __future__ import annotations

from mnemic.errors import MnemicError, Unavailable
from mnemic.model.token_count import TokenCounter

__all__ = ["Counted"]


class Counted:
    """Counts as the counter does; its faults, and what is no count, are told as `Unavailable`."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def count(self, text: str) -> int:
        """How many tokens `text` costs. Raises `Unavailable`."""
        try:
            tokens: object = self._counter.count(text)
        except MnemicError:
            raise
        except Exception as fault:  # a host's own counter fails in its own ways
            # Not in its words, which may quote what it was given.
            raise Unavailable(f"the token counter failed: {type(fault).__name__}") from fault
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
            raise Unavailable(f"the token counter gave no count but {type(tokens).__name__}")
        return tokens
