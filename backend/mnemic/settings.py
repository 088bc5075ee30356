"""What an operator can set: nested, frozen, bounded, read once.

A value comes from, in falling order: an argument, the environment (`MEM_DATABASE_URL`,
`MEM_RECALL__LIMIT_MAX=50`), the TOML file that `MEM_SETTINGS_FILE` names, the default.
Names end in their unit. `MemorySettings()` is written in entry points only; everybody else
is handed a section.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from mnemic.errors import ConfigurationError
from mnemic.settings_context import ContextSettings
from mnemic.settings_embedding import EmbeddingSettings
from mnemic.settings_ranking import RankingSettings
from mnemic.settings_section import Section as _Section
from mnemic.settings_values import (
    AsyncDsn,
    CacheDsn,
    Folder,
    Named,
    without_password,
)

__all__ = [
    "CacheSettings",
    "ContextSettings",
    "DatabaseSettings",
    "EmbeddedSettings",
    "EmbeddingSettings",
    "LimitSettings",
    "MaintenanceSettings",
    "MemorySettings",
    "RankingSettings",
    "RecallSettings",
    "WorkingSettings",
    "environment",
    "settings_file",
    "value_names",
    "variable_of",
]

SETTINGS_FILE = "MEM_SETTINGS_FILE"
PREFIX = "MEM_"


def default_data_dir() -> Path:
    """The folder of the embedded servers: `$XDG_DATA_HOME/mnemic`, else `~/.local/share/mnemic`.

    An account without a home, as in a container, has `/var/tmp/mnemic-<uid>`.
    """
    base = os.environ.get("XDG_DATA_HOME")
    if base:
        return Path(base) / "mnemic"
    try:
        home = Path.home()
    except RuntimeError:
        return Path("/var/tmp") / f"mnemic-{os.getuid()}"  # noqa: S108 - checked when it is used
    return home / ".local" / "share" / "mnemic"


class EmbeddedSettings(_Section):
    """The servers that ship as wheels; used for each URL that is not set."""

    data_dir: Folder = Field(default_factory=default_data_dir, description="folder of the data")
    run_as: Named | None = Field(
        default=None,
        description="system user that runs the servers when started by root; "
        "default: `mnemic` if there is one, else `nobody`",
    )
    start_timeout_seconds: float = Field(default=60, gt=0, le=600)


class DatabaseSettings(_Section):
    """How PostgreSQL is spoken to."""

    pool_max: int = Field(default=10, ge=1, le=500, description="connections a process and loop")
    acquire_timeout_seconds: float = Field(default=0.8, gt=0, le=60)
    connect_timeout_seconds: float = Field(default=5, gt=0, le=60)
    statement_timeout_ms: int = Field(default=10_000, ge=10, le=600_000)
    timeout_seconds: float = Field(
        default=12, gt=0, le=900, description="one exchange; longer than statement_timeout_ms"
    )
    lock_timeout_ms: int = Field(default=3_000, ge=10, le=600_000)
    retry_max: int = Field(
        default=4, ge=0, le=20, description="retries of a deadlock or serialization failure"
    )
    require_durable: bool = Field(
        default=True,
        description="refuse a server with fsync or synchronous_commit off; only for throwaway data "
        "may this be false",
    )
    pgbouncer: bool = Field(
        default=False, description="no prepared statements, for a pooler in transaction mode"
    )

    @model_validator(mode="after")
    def _server_gives_up_first(self) -> Self:
        if self.timeout_seconds * 1_000 <= self.statement_timeout_ms:
            message = (
                "database.timeout_seconds must be longer than database.statement_timeout_ms "
                f"({self.statement_timeout_ms} ms); raise the first, or lower the second"
            )
            raise ValueError(message)
        return self


class LimitSettings(_Section):
    """Bounds of what is held."""

    text_chars_max: int = Field(default=100_000, ge=100, le=1_000_000)
    query_chars_max: int = Field(default=10_000, ge=10, le=100_000)
    query_terms_max: int = Field(default=64, ge=4, le=1_000)
    metadata_bytes_max: int = Field(default=65_536, ge=100, le=1_000_000)
    tags_max: int = Field(default=100, ge=0, le=10_000)
    batch_max: int = Field(default=1_000, ge=1, le=100_000, description="items a call")


class RecallSettings(_Section):
    """How memories are found and ranked."""

    limit_default: int = Field(default=10, ge=1, le=1_000)
    limit_max: int = Field(default=100, ge=1, le=1_000)
    candidates_max: int = Field(default=30, ge=5, le=500, description="top-k of each arm")
    neighbours: int = Field(default=2, ge=0, le=5, description="turns around each candidate")
    lexical_candidates_max: int = Field(
        default=250, ge=10, le=1_000_000, description="rows whose words are ranked"
    )
    exact_scan_rows_max: int = Field(
        default=20_000,
        ge=1,
        le=10_000_000,
        description="visible vectors that are all compared; beyond, by an index of the tenant's",
    )
    hnsw_ef_search: int = Field(
        default=200, ge=10, le=1_000, description="how far such an index looks around"
    )
    time_candidates_max: int = Field(default=1_000, ge=0, le=100_000, description="0: no time arm")
    spelling: bool = Field(default=True, description="look for misspelt words")
    score_floor: float = Field(default=0.43, ge=0, le=10)
    low_confidence_below: float = Field(default=0.2, ge=0, le=1)
    rerank_max: int = Field(
        default=50,
        ge=1,
        le=1_000,
        description="hits that a reranker, if any, puts in order",
    )
    rerank_timeout_ms: int = Field(
        default=300, ge=1, le=60_000, description="then the hits stay as they stood"
    )


class CacheSettings(_Section):
    """What a process keeps of its answers, without a text, while nothing is written; 0 for none."""

    recalls_max: int = Field(default=1_000, ge=0, le=1_000_000)
    facts_max: int = Field(default=1_000, ge=0, le=1_000_000, description="scopes' surest facts")
    seconds: float = Field(default=60, gt=0, le=3_600)


class WorkingSettings(_Section):
    """What an agent holds while it works, and what happens when its store is away."""

    place: Literal["valkey", "postgres", "local"] = Field(
        default="valkey", description="`local` is this process alone, for tests"
    )
    namespace: Named = Field(
        default="mnemic",
        max_length=200,
        description="keeps deployments apart that share one Valkey",
    )
    ttl: timedelta = Field(
        default=timedelta(hours=6), ge=timedelta(seconds=1), description="default"
    )
    ttl_max: timedelta = Field(
        default=timedelta(days=366), ge=timedelta(seconds=1), le=timedelta(days=36_600)
    )
    keys_max: int = Field(default=1_000, ge=1, le=100_000, description="keys a scope")
    key_bytes_max: int = Field(default=10_240, ge=1, le=100_000)
    value_bytes_max: int = Field(default=1_048_576, ge=100, le=16_777_216)
    bytes_max: int = Field(default=16_777_216, ge=1_000, le=134_217_728, description="a scope")
    scratchpad_entries_max: int = Field(default=10_000, ge=1, le=100_000)
    scratchpad_entry_chars_max: int = Field(default=20_000, ge=10, le=1_000_000)
    checkpoints_max: int = Field(default=20, ge=1, le=1_000, description="kept a scope")
    on_outage: Literal["degrade", "refuse"] = Field(
        default="degrade",
        description="Valkey away: hold writes in this process and say so, or refuse",
    )
    degraded_bytes_max: int = Field(
        default=67_108_864, ge=1_000, le=1_073_741_824, description="held a process while degraded"
    )
    tombstone_ttl: timedelta = Field(
        default=timedelta(days=1),
        ge=timedelta(minutes=1),
        le=timedelta(days=36_600),
        description="how long after it an outage can still be merged",
    )
    durable_lease_seconds: float = Field(
        default=2, gt=0, le=60, description="how long it is known which keys are durable"
    )
    timeout_seconds: float = Field(default=0.4, gt=0, le=10, description="one exchange")
    connect_timeout_seconds: float = Field(default=0.25, gt=0, le=10)
    retry_after_seconds: float = Field(
        default=0.5, gt=0, le=60, description="between two attempts to reach Valkey again"
    )
    connections_max: int = Field(default=20, ge=1, le=1_000, description="a process and loop")
    acquire_timeout_seconds: float = Field(
        default=0.8, gt=0, le=60, description="waiting for one of them to be free"
    )

    @model_validator(mode="after")
    def _bounds_that_fit_together(self) -> Self:
        if self.ttl > self.ttl_max:
            message = "working.ttl must not exceed working.ttl_max"
            raise ValueError(message)
        if self.value_bytes_max > self.bytes_max:
            message = "working.value_bytes_max must not exceed working.bytes_max"
            raise ValueError(message)
        return self


class MaintenanceSettings(_Section):
    """What the worker does when beat says so."""

    idle_after: timedelta = Field(
        default=timedelta(minutes=30), gt=timedelta(0), le=timedelta(days=36_600)
    )
    end_idle_every_seconds: float = Field(default=60, ge=1, le=86_400)
    embed_missing_every_seconds: float = Field(default=60, ge=1, le=86_400)
    expire_every_seconds: float = Field(default=3_600, ge=1, le=86_400)
    promote_every_seconds: float = Field(default=3_600, ge=1, le=86_400)
    index_memory_mb: int = Field(
        default=256, ge=16, le=65_536, description="of PostgreSQL, to build a tenant's index in"
    )
    move_lock_seconds: float = Field(
        default=2, gt=0, le=600, description="a table is held while a tenant's vectors change place"
    )
    placement_wait_seconds: float = Field(
        default=60, ge=0.1, le=86_400, description="for another promotion or move to end"
    )
    tenants_max: int = Field(default=100, ge=1, le=10_000, description="tenants a run")
    batch_max: int = Field(default=256, ge=1, le=10_000, description="rows a transaction")
    task_time_limit_seconds: int = Field(default=600, ge=10, le=86_400)


class MemorySettings(BaseSettings):
    """Everything that can be set; `mnemic settings` prints it with where each value came from."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
        frozen=True,
        extra="forbid",
        validate_default=True,
        hide_input_in_errors=True,  # a refused URL may hold a password
    )

    database_url: AsyncDsn | None = Field(default=None, description="serves, as mnemic_app")
    database_owner_url: AsyncDsn | None = Field(default=None, description="migrates")
    redis_url: CacheDsn | None = Field(default=None, description="working memory, cache, broker")

    embedded: EmbeddedSettings = Field(default_factory=EmbeddedSettings)
    database: DatabaseSettings = DatabaseSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    limits: LimitSettings = LimitSettings()
    recall: RecallSettings = RecallSettings()
    ranking: RankingSettings = RankingSettings()
    cache: CacheSettings = CacheSettings()
    context: ContextSettings = ContextSettings()
    working: WorkingSettings = WorkingSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()

    @model_validator(mode="after")
    def _defaults_within_their_maxima(self) -> Self:
        if self.recall.limit_default > self.recall.limit_max:
            message = "recall.limit_default must not exceed recall.limit_max"
            raise ValueError(message)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the TOML file of `MEM_SETTINGS_FILE`."""
        del dotenv_settings, file_secret_settings
        named = settings_file()
        if named is None:
            return (init_settings, env_settings)
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls, named))

    def effective(self) -> dict[str, Any]:
        """Every value by its dotted name, as JSON has it; secrets and passwords are masked."""
        flat: dict[str, Any] = {}
        for name, value in self.model_dump(mode="json").items():
            held = getattr(self, name)
            if isinstance(held, _Section):
                flat.update(
                    {f"{name}.{key}": _masked(getattr(held, key), value[key]) for key in value}
                )
            else:
                flat[name] = _masked(held, value)
        return flat


def settings_file() -> Path | None:
    """The TOML file that `MEM_SETTINGS_FILE` names. Raises `ConfigurationError` without one."""
    named = os.environ.get(SETTINGS_FILE)
    if not named:
        return None
    if not Path(named).is_file():
        raise ConfigurationError(f"{SETTINGS_FILE} names {named}, which is not a file; correct it")
    return Path(named)


def environment() -> Mapping[str, str]:
    """The environment of this process."""
    return os.environ


def value_names() -> list[str]:
    """The dotted name of every value."""
    names = []
    for name, field in MemorySettings.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, _Section):
            names += [f"{name}.{inner}" for inner in section.model_fields]
        else:
            names.append(name)
    return names


def variable_of(name: str) -> str:
    """The environment variable that sets `recall.limit_max`: `MEM_RECALL__LIMIT_MAX`."""
    return PREFIX + name.upper().replace(".", "__")


def _masked(held: Any, shown: Any) -> Any:
    """The value without what must not be printed."""
    if isinstance(held, SecretStr):
        text = held.get_secret_value()
        return without_password(text) if "://" in text else "***"
    if isinstance(held, str) and "://" in held:
        return without_password(held)
    return shown
