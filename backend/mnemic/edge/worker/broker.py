"""Where messages go: Valkey as Celery's broker."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

from mnemic.settings import MemorySettings

__all__ = ["broker_url", "key_prefix"]


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
    """What every key of the broker begins with.

    Installations that share one Valkey are kept apart by `working.namespace`; otherwise one's
    worker would take the other's messages.
    """
    return f"{settings.working.namespace}:jobs:"
