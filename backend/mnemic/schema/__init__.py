"""Tables, one file a noun; read by the store and by Alembic only."""

from __future__ import annotations

from mnemic.schema import (
    audit,
    entity,
    episode,
    fact,
    file,
    guard,
    history,
    observation,
    preference,
    principal,
    procedure,
    run,
    scope,
    session,
    statistics,
    tenant,
    turn,
    vector,
    working,
)
from mnemic.schema.columns import SCHEMA, metadata

__all__ = [
    "SCHEMA",
    "TENANTLESS_TABLES",
    "audit",
    "entity",
    "episode",
    "fact",
    "file",
    "guard",
    "history",
    "metadata",
    "observation",
    "preference",
    "principal",
    "procedure",
    "run",
    "scope",
    "session",
    "statistics",
    "tenant",
    "turn",
    "vector",
    "working",
]

TENANTLESS_TABLES = frozenset({"alembic_version", "embedding_models", "job_runs", "predicates"})
"""The only tables without a tenant; the catalogue test holds every other one to the rules."""
