"""What a Valkey or Redis server says about itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from mnemic.errors import ConfigurationError, StoreUnavailable

__all__ = ["SERVED", "VERSIONS_MIN", "ValkeyFacts", "product_of", "valkey_facts"]

TIMEOUT_SECONDS = 3.0
# By major and minor number.
VERSIONS_MIN = {"Valkey": (7, 2), "Redis": (7, 0)}
SERVED = ", or ".join(
    f"{product} {'.'.join(map(str, least))} or newer" for product, least in VERSIONS_MIN.items()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValkeyFacts:
    """The server; sizes in bytes, `memory_max` 0 where none is set."""

    product: str
    version: tuple[int, ...]
    eviction_policy: str
    memory_used: int
    memory_max: int
    appends_to_file: bool
    is_replica: bool
    answer_ms: float

    @property
    def version_text(self) -> str:
        """The version as it is written."""
        return ".".join(map(str, self.version))


async def valkey_facts(url: str | SecretStr, *, setting: str = "MEM_REDIS_URL") -> ValkeyFacts:
    """The facts, asked over one connection; `setting` is where the URL came from, for the errors.

    Raises `StoreUnavailable` if the server cannot be reached within three seconds,
    `ConfigurationError` if it refuses the login or the URL cannot be used.
    """
    given = url.get_secret_value() if isinstance(url, SecretStr) else url
    try:
        client: Any = Redis.from_url(
            given,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )
    except ValueError:
        raise ConfigurationError(
            f"{setting} is not a usable URL; write redis://host:6379/0"
        ) from None
    try:
        return await _asked(client)
    except (RedisError, OSError, TimeoutError) as fault:
        if refusal := _refusal(fault):
            raise ConfigurationError(f"the server in {setting} refuses: {refusal}") from fault
        raise StoreUnavailable(
            f"the server in {setting} cannot be reached: {type(fault).__name__}"
        ) from fault
    finally:
        await client.aclose()


def _refusal(fault: BaseException | None) -> BaseException | None:
    """The server's own no, which the client reports as a connection that failed."""
    while fault is not None and not isinstance(fault, (AuthenticationError, ResponseError)):
        fault = fault.__cause__ or fault.__context__
    return fault


async def _asked(client: Any) -> ValkeyFacts:
    await client.ping()
    started = time.perf_counter()
    await client.ping()
    answer_ms = (time.perf_counter() - started) * 1_000
    told = await client.info("everything")
    product, version = product_of(told)
    return ValkeyFacts(
        product=product,
        version=version,
        eviction_policy=told.get("maxmemory_policy", "unknown"),
        memory_used=int(told.get("used_memory", 0)),
        memory_max=int(told.get("maxmemory", 0)),
        appends_to_file=bool(told.get("aof_enabled")),
        is_replica=told.get("role") != "master",
        answer_ms=answer_ms,
    )


def product_of(told: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    """The name of the product and its version, by INFO; Valkey also tells which Redis it equals."""
    is_valkey = told.get("server_name") == "valkey"
    version = str(told.get("valkey_version" if is_valkey else "redis_version", "0"))
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    return "Valkey" if is_valkey else "Redis", numbers
