"""Shipped for users: builders and a clock for tests against a real Mnemic."""

from mnemic.testing.builders import a_conversation, a_fact, a_scope, a_turn
from mnemic.testing.clock import TickingClock

__all__ = ["TickingClock", "a_conversation", "a_fact", "a_scope", "a_turn"]
