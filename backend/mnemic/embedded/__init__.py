"""PostgreSQL 18 + pgvector and Valkey 9 out of wheels: for the demo, tests and single-node use."""

from mnemic.embedded.servers import EmbeddedServers, start

__all__ = ["EmbeddedServers", "start"]
