"""Memory that remembers nothing: for services that run without memory, and for their tests.

Every call is taken as the real one takes it and answered emptily; what would have to name a
memory raises `NotFound`. No server is started or asked.
"""

from mnemic.null.manager import NullMemoryManager

__all__ = ["NullMemoryManager"]
