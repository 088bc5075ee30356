"""Every exception this package raises.

MnemicError
├── InvalidInput                 the caller's value cannot be held; names the field and the remedy
│   ├── NaiveTimestamp
│   └── UnknownFormat
├── NotFound                     also the answer for what another tenant or scope owns
├── Conflict                     the state changed, or the same key came with another body
│   └── Retracted
├── Forbidden                    the scope may not do this
├── ConfigurationError           settings or servers are not fit to serve; says how to repair them
│   ├── SchemaMismatch
│   └── EmbeddingMismatch
└── Unavailable                  safe to retry
    ├── StoreUnavailable
    ├── EmbedderUnavailable
    ├── ThinkerUnavailable
    ├── OutcomeUnknown
    └── ServerUnavailable
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "ConfigurationError",
    "Conflict",
    "EmbedderUnavailable",
    "EmbeddingMismatch",
    "Forbidden",
    "InvalidInput",
    "MnemicError",
    "NaiveTimestamp",
    "NotFound",
    "OutcomeUnknown",
    "Retracted",
    "SchemaMismatch",
    "ServerUnavailable",
    "StoreUnavailable",
    "ThinkerUnavailable",
    "Unavailable",
    "UnknownFormat",
]


class MnemicError(Exception):
    """Something failed inside mnemic."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, detail: str | None = None, /, **context: object) -> None:
        super().__init__(detail or (type(self).__doc__ or "").partition("\n")[0])
        self.context = context


class InvalidInput(MnemicError):
    """The value cannot be held."""

    code = "invalid_input"

    def __init__(self, detail: str | None = None, /, *, field: str, **context: object) -> None:
        summary = detail or (type(self).__doc__ or "").partition("\n")[0]
        super().__init__(f"{field}: {summary}", field=field, **context)
        self.field = field


class NaiveTimestamp(InvalidInput):
    """the time has no zone; pass a datetime with tzinfo, for example in UTC."""

    code = "naive_timestamp"


class UnknownFormat(InvalidInput):
    """the file is none of the formats that can be read."""

    code = "unknown_format"


class NotFound(MnemicError):
    """No such memory in this scope."""

    code = "not_found"


class Conflict(MnemicError):
    """The memory changed since it was read."""

    code = "conflict"


class Retracted(Conflict):
    """This value was retracted here; pass lift=True to take it back."""

    code = "retracted"


class Forbidden(MnemicError):
    """This scope may not do that."""

    code = "forbidden"


class ConfigurationError(MnemicError):
    """The settings or the servers are not fit to serve."""

    code = "configuration"


class SchemaMismatch(ConfigurationError):
    """The database's schema is not the one this release serves; run `mnemic db upgrade`."""

    code = "schema_mismatch"


class EmbeddingMismatch(ConfigurationError):
    """The embedding model that is set differs from the one the stored vectors were made with."""

    code = "embedding_mismatch"


class Unavailable(MnemicError):
    """A part that is needed cannot be reached; nothing was changed."""

    code = "unavailable"
    retryable = True


class StoreUnavailable(Unavailable):
    """The database cannot be reached; nothing was changed."""

    code = "store_unavailable"


class EmbedderUnavailable(Unavailable):
    """The embedding model gave no usable vector."""

    code = "embedder_unavailable"


class ThinkerUnavailable(Unavailable):
    """The Thinker gave nothing that can be kept; nothing was changed."""

    code = "thinker_unavailable"


class OutcomeUnknown(Unavailable):
    """The connection was lost while committing; retry with the same idempotency key."""

    code = "outcome_unknown"


class ServerUnavailable(Unavailable):
    """An embedded server cannot be started."""

    code = "server_unavailable"
