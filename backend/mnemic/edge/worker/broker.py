"""Where messages go: Valkey as Celery's broker."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

from mnemic.settings import MemorySettings

__all__ = ["broker_url", "key_prefix"]

POSTGRES_PORT = 5432


def broker_url(redis_url: str) -> str:
    """The URL of Valkey in the words of Kombu.

    `unix:///path?db=1` becomes `redis+socket:///path?virtual_host=1`; a `rediss://` URL that does
    not say how certificates are checked requires them to be valid, where Kombu would not look.
    """
    parts = urlsplit(redis_url)
    query = dict(parse_qsl(parts.query))
    if parts.scheme == "unix":
        place = f"{parts.netloc}{parts.path}"
        chosen = f"?{urlencode({'virtual_host': query['db']})}" if "db" in query else ""
        return f"redis+socket://{place}{chosen}"
    if parts.scheme == "rediss" and "ssl_cert_reqs" not in query:
        return parts._replace(query=urlencode({**query, "ssl_cert_reqs": "required"})).geturl()
    return redis_url


def key_prefix(settings: MemorySettings) -> str:
    """What every key of the broker begins with, so that two installations share one Valkey.

    It stands for the database: worker and beat must name it alike (host, port and name; the role
    and the password do not matter).
    """
    mark = sha256(_database(settings).encode()).hexdigest()[:12]
    return f"mnemic:{mark}:"


def _database(settings: MemorySettings) -> str:
    if settings.database_url is None:
        return f"embedded {settings.embedded.data_dir.expanduser().resolve()}"
    parts = urlsplit(settings.database_url.get_secret_value())
    query = parse_qs(parts.query)
    host = query["host"][0] if "host" in query else parts.hostname or ""
    port = query["port"][0] if "port" in query else parts.port or POSTGRES_PORT
    return f"{unquote(host)} {port} {unquote(parts.path)}"
