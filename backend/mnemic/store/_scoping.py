"""The first wall: the predicate that every statement carries.

`{owned:t}` in a statement stands for the tenant and the visible scopes of the alias `t`, and
`{tenant:t}` for the tenant alone. Both are written here and nowhere else. Row-level security is
the second wall; each holds without the other.
"""

from __future__ import annotations

__all__ = ["owned_by", "tenant_predicate"]


def tenant_predicate(alias: str) -> str:
    """Rows of `alias` that belong to the tenant."""
    return f"{alias}.tenant_id = :tenant"


def owned_by(alias: str) -> str:
    """Rows of `alias` that belong to the tenant and stand in one of the visible scopes."""
    return f"{tenant_predicate(alias)} AND {alias}.scope_id = ANY(CAST(:scopes AS uuid[]))"
