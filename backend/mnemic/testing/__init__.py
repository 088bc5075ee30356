"""Shipped for users: builders, a clock and an embedder for tests against a real Mnemic."""

from mnemic.testing.builders import a_conversation, a_fact, a_scope, a_turn
from mnemic.testing.clock import TickingClock
from mnemic.testing.embedder import HashingEmbedder

__all__ = ["HashingEmbedder", "TickingClock", "a_conversation", "a_fact", "a_scope", "a_turn"]
