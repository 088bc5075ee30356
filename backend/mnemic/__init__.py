"""Memory for Python services that run AI agents.

Everything public is here; what is not exported from `mnemic` is private.
"""

from mnemic.errors import (
    ConfigurationError,
    Conflict,
    EmbedderUnavailable,
    EmbeddingMismatch,
    Forbidden,
    InvalidInput,
    MnemicError,
    NaiveTimestamp,
    NotFound,
    OutcomeUnknown,
    SchemaMismatch,
    ServerUnavailable,
    StoreUnavailable,
    Unavailable,
    UnknownFormat,
)
from mnemic.manager import MemoryManager
from mnemic.model.context import Context
from mnemic.model.episode import Episode, EpisodeCreate, Outcome
from mnemic.model.fact import Fact, FactCreate
from mnemic.model.procedure import Procedure, ProcedureCreate, Step
from mnemic.model.recall import Hit, MemoryItem, Recall
from mnemic.model.receipt import Durability, Receipt, VectorState
from mnemic.model.scope import MemoryScope, Scope, Tenant, TenantKind
from mnemic.model.session import Session, SessionState
from mnemic.model.trust import Trust
from mnemic.model.turn import Turn, TurnCreate
from mnemic.settings import MemorySettings
from mnemic.store.upgrade import upgrade

__version__ = "0.1.0"

__all__ = [
    "ConfigurationError",
    "Conflict",
    "Context",
    "Durability",
    "EmbedderUnavailable",
    "EmbeddingMismatch",
    "Episode",
    "EpisodeCreate",
    "Fact",
    "FactCreate",
    "Forbidden",
    "Hit",
    "InvalidInput",
    "MemoryItem",
    "MemoryManager",
    "MemoryScope",
    "MemorySettings",
    "MnemicError",
    "NaiveTimestamp",
    "NotFound",
    "Outcome",
    "OutcomeUnknown",
    "Procedure",
    "ProcedureCreate",
    "Recall",
    "Receipt",
    "SchemaMismatch",
    "Scope",
    "ServerUnavailable",
    "Session",
    "SessionState",
    "Step",
    "StoreUnavailable",
    "Tenant",
    "TenantKind",
    "Trust",
    "Turn",
    "TurnCreate",
    "Unavailable",
    "UnknownFormat",
    "VectorState",
    "upgrade",
]
