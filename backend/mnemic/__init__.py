"""Memory for Python services that run AI agents.

Everything public is here; what is not exported from `mnemic` is private. Names are imported when
they are first used, so that `import mnemic` costs a command or a forked worker nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
        Retracted,
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
    "Retracted",
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

_HOMES = {
    "ConfigurationError": "mnemic.errors",
    "Conflict": "mnemic.errors",
    "Context": "mnemic.model.context",
    "Durability": "mnemic.model.receipt",
    "EmbedderUnavailable": "mnemic.errors",
    "EmbeddingMismatch": "mnemic.errors",
    "Episode": "mnemic.model.episode",
    "EpisodeCreate": "mnemic.model.episode",
    "Fact": "mnemic.model.fact",
    "FactCreate": "mnemic.model.fact",
    "Forbidden": "mnemic.errors",
    "Hit": "mnemic.model.recall",
    "InvalidInput": "mnemic.errors",
    "MemoryItem": "mnemic.model.recall",
    "MemoryManager": "mnemic.manager",
    "MemoryScope": "mnemic.model.scope",
    "MemorySettings": "mnemic.settings",
    "MnemicError": "mnemic.errors",
    "NaiveTimestamp": "mnemic.errors",
    "NotFound": "mnemic.errors",
    "Outcome": "mnemic.model.episode",
    "OutcomeUnknown": "mnemic.errors",
    "Procedure": "mnemic.model.procedure",
    "ProcedureCreate": "mnemic.model.procedure",
    "Recall": "mnemic.model.recall",
    "Receipt": "mnemic.model.receipt",
    "Retracted": "mnemic.errors",
    "SchemaMismatch": "mnemic.errors",
    "Scope": "mnemic.model.scope",
    "ServerUnavailable": "mnemic.errors",
    "Session": "mnemic.model.session",
    "SessionState": "mnemic.model.session",
    "Step": "mnemic.model.procedure",
    "StoreUnavailable": "mnemic.errors",
    "Tenant": "mnemic.model.scope",
    "TenantKind": "mnemic.model.scope",
    "Trust": "mnemic.model.trust",
    "Turn": "mnemic.model.turn",
    "TurnCreate": "mnemic.model.turn",
    "Unavailable": "mnemic.errors",
    "UnknownFormat": "mnemic.errors",
    "VectorState": "mnemic.model.receipt",
    "upgrade": "mnemic.store.upgrade",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        message = f"module 'mnemic' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
