"""The URL of a database, in the one form that the driver reads."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import SecretStr

from mnemic.errors import ConfigurationError

__all__ = ["driver_dsn"]

_SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")


def driver_dsn(url: str | SecretStr) -> str:
    """The URL as asyncpg takes it, unmasked; a socket is `postgresql://user@/db?host=/dir`.

    Only the driver parses it, so that percent-encoded passwords, `sslmode` and several hosts mean
    the same for serving and for migrating. Raises `ConfigurationError` for another scheme.
    """
    given = url.get_secret_value() if isinstance(url, SecretStr) else url
    scheme = urlsplit(given).scheme
    if scheme not in _SCHEMES:
        raise ConfigurationError(
            f"a database URL starts with postgresql://, not {scheme or 'nothing'}://"
        )
    return "postgresql" + given[len(scheme) :]
