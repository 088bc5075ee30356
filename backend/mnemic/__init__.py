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
        ThinkerUnavailable,
        Unavailable,
        UnknownFormat,
    )
    from mnemic.manager import MemoryManager
    from mnemic.model.cache_counts import CacheCounts
    from mnemic.model.confidence import ConfidenceMap
    from mnemic.model.context import (
        Context,
        ContextForm,
        ContextItem,
        ContextPart,
        Omission,
        Section,
    )
    from mnemic.model.embedding import CosineScale, Embedder, ModelSignature
    from mnemic.model.episode import Episode, EpisodeCreate, EpisodeDraft, Outcome
    from mnemic.model.explanation import (
        Arm,
        ArmHit,
        Explanation,
        KindSearch,
        RecallStage,
        WhyNot,
    )
    from mnemic.model.fact import Fact, FactCreate
    from mnemic.model.filter_building import FilterField, where
    from mnemic.model.filters import Filter
    from mnemic.model.procedure import Procedure, ProcedureCreate, Step
    from mnemic.model.recall import Hit, MemoryItem, Recall
    from mnemic.model.receipt import Durability, Receipt, VectorState
    from mnemic.model.reranker import Reranker
    from mnemic.model.scope import MemoryScope, Scope, Tenant, TenantKind
    from mnemic.model.session import Session, SessionState
    from mnemic.model.token_count import TokenCounter
    from mnemic.model.trust import Trust
    from mnemic.model.turn import ROLES, Turn, TurnCreate
    from mnemic.model.working import (
        TaskState,
        WorkingCheckpoint,
        WorkingConflict,
        WorkingRecord,
        WorkingStatus,
    )
    from mnemic.service.forget import Forgotten
    from mnemic.service.ingest import IngestReport
    from mnemic.service.maintain import MaintenanceReport
    from mnemic.service.memory_input import MemoryOptions
    from mnemic.settings import MemorySettings
    from mnemic.store.upgrade import upgrade
    from mnemic.store.working.place import MemoryStore
    from mnemic.think import SessionRecord, Thinker

__version__ = "0.1.0"

__all__ = [
    "ROLES",
    "Arm",
    "ArmHit",
    "CacheCounts",
    "ConfidenceMap",
    "ConfigurationError",
    "Conflict",
    "Context",
    "ContextForm",
    "ContextItem",
    "ContextPart",
    "CosineScale",
    "Durability",
    "Embedder",
    "EmbedderUnavailable",
    "EmbeddingMismatch",
    "Episode",
    "EpisodeCreate",
    "EpisodeDraft",
    "Explanation",
    "Fact",
    "FactCreate",
    "Filter",
    "FilterField",
    "Forbidden",
    "Forgotten",
    "Hit",
    "IngestReport",
    "InvalidInput",
    "KindSearch",
    "MaintenanceReport",
    "MemoryItem",
    "MemoryManager",
    "MemoryOptions",
    "MemoryScope",
    "MemorySettings",
    "MemoryStore",
    "MnemicError",
    "ModelSignature",
    "NaiveTimestamp",
    "NotFound",
    "Omission",
    "Outcome",
    "OutcomeUnknown",
    "Procedure",
    "ProcedureCreate",
    "Recall",
    "RecallStage",
    "Receipt",
    "Reranker",
    "Retracted",
    "SchemaMismatch",
    "Scope",
    "Section",
    "ServerUnavailable",
    "Session",
    "SessionRecord",
    "SessionState",
    "Step",
    "StoreUnavailable",
    "TaskState",
    "Tenant",
    "TenantKind",
    "Thinker",
    "ThinkerUnavailable",
    "TokenCounter",
    "Trust",
    "Turn",
    "TurnCreate",
    "Unavailable",
    "UnknownFormat",
    "VectorState",
    "WhyNot",
    "WorkingCheckpoint",
    "WorkingConflict",
    "WorkingRecord",
    "WorkingStatus",
    "upgrade",
    "where",
]

_HOMES = {
    "Arm": "mnemic.model.explanation",
    "ArmHit": "mnemic.model.explanation",
    "CacheCounts": "mnemic.model.cache_counts",
    "ConfidenceMap": "mnemic.model.confidence",
    "ConfigurationError": "mnemic.errors",
    "Conflict": "mnemic.errors",
    "Context": "mnemic.model.context",
    "ContextForm": "mnemic.model.context",
    "ContextItem": "mnemic.model.context",
    "ContextPart": "mnemic.model.context",
    "CosineScale": "mnemic.model.embedding",
    "Durability": "mnemic.model.receipt",
    "Embedder": "mnemic.model.embedding",
    "EmbedderUnavailable": "mnemic.errors",
    "EmbeddingMismatch": "mnemic.errors",
    "Episode": "mnemic.model.episode",
    "EpisodeCreate": "mnemic.model.episode",
    "EpisodeDraft": "mnemic.model.episode",
    "Explanation": "mnemic.model.explanation",
    "Fact": "mnemic.model.fact",
    "FactCreate": "mnemic.model.fact",
    "Filter": "mnemic.model.filters",
    "FilterField": "mnemic.model.filter_building",
    "Forbidden": "mnemic.errors",
    "Forgotten": "mnemic.service.forget",
    "Hit": "mnemic.model.recall",
    "IngestReport": "mnemic.service.ingest",
    "InvalidInput": "mnemic.errors",
    "KindSearch": "mnemic.model.explanation",
    "MaintenanceReport": "mnemic.service.maintain",
    "MemoryItem": "mnemic.model.recall",
    "MemoryManager": "mnemic.manager",
    "MemoryOptions": "mnemic.service.memory_input",
    "MemoryScope": "mnemic.model.scope",
    "MemorySettings": "mnemic.settings",
    "MemoryStore": "mnemic.store.working.place",
    "MnemicError": "mnemic.errors",
    "ModelSignature": "mnemic.model.embedding",
    "NaiveTimestamp": "mnemic.errors",
    "NotFound": "mnemic.errors",
    "Omission": "mnemic.model.context",
    "Outcome": "mnemic.model.episode",
    "OutcomeUnknown": "mnemic.errors",
    "Procedure": "mnemic.model.procedure",
    "ProcedureCreate": "mnemic.model.procedure",
    "ROLES": "mnemic.model.turn",
    "Recall": "mnemic.model.recall",
    "RecallStage": "mnemic.model.explanation",
    "Receipt": "mnemic.model.receipt",
    "Reranker": "mnemic.model.reranker",
    "Retracted": "mnemic.errors",
    "SchemaMismatch": "mnemic.errors",
    "Scope": "mnemic.model.scope",
    "Section": "mnemic.model.context",
    "ServerUnavailable": "mnemic.errors",
    "Session": "mnemic.model.session",
    "SessionRecord": "mnemic.think",
    "SessionState": "mnemic.model.session",
    "Step": "mnemic.model.procedure",
    "StoreUnavailable": "mnemic.errors",
    "TaskState": "mnemic.model.working",
    "Tenant": "mnemic.model.scope",
    "TenantKind": "mnemic.model.scope",
    "Thinker": "mnemic.think",
    "ThinkerUnavailable": "mnemic.errors",
    "TokenCounter": "mnemic.model.token_count",
    "Trust": "mnemic.model.trust",
    "Turn": "mnemic.model.turn",
    "TurnCreate": "mnemic.model.turn",
    "Unavailable": "mnemic.errors",
    "UnknownFormat": "mnemic.errors",
    "VectorState": "mnemic.model.receipt",
    "WhyNot": "mnemic.model.explanation",
    "WorkingCheckpoint": "mnemic.model.working",
    "WorkingConflict": "mnemic.model.working",
    "WorkingRecord": "mnemic.model.working",
    "WorkingStatus": "mnemic.model.working",
    "upgrade": "mnemic.store.upgrade",
    "where": "mnemic.model.filter_building",
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
