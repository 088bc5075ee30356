"""What is made of memories: rules by default, a language model as a plug-in."""

from mnemic.think.extraction import extract_facts
from mnemic.think.protocol import SessionRecord, Thinker
from mnemic.think.rules import RulesThinker

__all__ = ["RulesThinker", "SessionRecord", "Thinker", "extract_facts"]
