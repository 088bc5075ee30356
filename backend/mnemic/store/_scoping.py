"""The first wall: the predicate that every statement carries.

`{owned:t}` in a statement stands for the tenant and the visible scopes of the alias `t`,
`{keyed:t}` for the same where rows are looked up by their keys, and `{tenant:t}` for the tenant
alone. They are written here and nowhere else. Row-level security is the second wall; each holds
without the other.
"""

from __future__ import annotations

__all__ = ["keyed_by", "owned_by", "predicate", "scopes_predicate", "tenant_predicate"]

_SCOPES = "CAST(:scopes AS uuid[])"


def tenant_predicate(alias: str) -> str:
    """Rows of `alias` that belong to the tenant."""
    return f"{alias}.tenant_id = :tenant"


def scopes_predicate(alias: str, scopes: str = _SCOPES) -> str:
    """Rows of `alias` that stand in one of the visible scopes."""
    return f"{alias}.scope_id = ANY({scopes})"


def owned_by(alias: str) -> str:
    """Rows of `alias` that belong to the tenant and stand in one of the visible scopes."""
    return f"{tenant_predicate(alias)} AND {scopes_predicate(alias)}"


def keyed_by(alias: str) -> str:
    """The same rows, looked up by their keys, whatever the planner knows of the scopes.

    It multiplies the share of the tenant by that of the scope, or has not seen either grow; so it
    takes a scope for a row or two, and would go through all of it for each key. Of a list that a
    query gives it knows no length: it allows for ten scopes, and a key is cheaper to look up.
    """
    scopes = scopes_predicate(alias, f"ARRAY(SELECT unnest({_SCOPES}))")
    return f"{tenant_predicate(alias)} AND {scopes}"


def predicate(word: str, alias: str) -> str:
    """What `{word:alias}` stands for in a statement."""
    made = {"owned": owned_by, "keyed": keyed_by, "tenant": tenant_predicate}
    return made[word](alias)
