"""Kinds of values that can be set, each refused when it is set to nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

__all__ = ["AsyncDsn", "CacheDsn", "Folder", "Named", "Secret", "without_password"]

_POSTGRES_SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")
_REDIS_SCHEMES = ("redis", "rediss", "unix")


def _url_of(schemes: tuple[str, ...], value: SecretStr) -> SecretStr:
    parts = urlsplit(value.get_secret_value())
    if parts.scheme not in schemes:
        message = f"the URL must start with one of {', '.join(f'{s}://' for s in schemes)}"
        raise ValueError(message)
    try:
        parts.port  # noqa: B018 - reading it is the check
    except ValueError:
        # Not in the words of the parser, which quotes what it took for a port.
        message = "the port must be a number; write / : and @ of a password as %2F %3A and %40"
        raise ValueError(message) from None
    return value


def _postgres(value: SecretStr) -> SecretStr:
    return _url_of(_POSTGRES_SCHEMES, value)


def _redis(value: SecretStr) -> SecretStr:
    return _url_of(_REDIS_SCHEMES, value)


def _not_blank(value: Any) -> Any:
    """What is set to nothing is no name of anything; neither is it the default."""
    held = value.get_secret_value() if isinstance(value, SecretStr) else value
    if isinstance(held, str) and not held.strip():
        message = "it is blank"
        raise ValueError(message)
    return value


Named = Annotated[str, AfterValidator(_not_blank)]
Secret = Annotated[SecretStr, AfterValidator(_not_blank)]
Folder = Annotated[Path, BeforeValidator(_not_blank)]  # an empty one would be the current folder
# pydantic's PostgresDsn refuses URLs of unix sockets (`postgresql://user@/db?host=/run`).
AsyncDsn = Annotated[SecretStr, AfterValidator(_postgres)]
CacheDsn = Annotated[SecretStr, AfterValidator(_redis)]


def without_password(url: str) -> str:
    """The URL as it may be shown: `***` stands for each password in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    netloc = f"{name}{colon and ':***'}{at}{host}"
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    hidden = [(key, "***" if "password" in key.lower() else value) for key, value in pairs]
    query = urlencode(hidden, safe="*/") if ("***" in dict(hidden).values()) else parts.query
    return urlunsplit(parts._replace(netloc=netloc, query=query))
