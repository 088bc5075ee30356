"""Who takes part: tenants whose names are easily confused, and the same scopes in each."""

from __future__ import annotations

from mnemic.model.scope import MemoryScope, Scope, Tenant, TenantKind

__all__ = ["HOMES", "LEAVES", "TENANTS"]

TENANTS = (
    Tenant(TenantKind.PERSON, "a"),
    Tenant(TenantKind.ORGANISATION, "a"),
    Tenant(TenantKind.PERSON, "A"),
    Tenant(TenantKind.PERSON, "a\x1f"),
    Tenant(TenantKind.ORGANISATION, "ab"),
    Tenant(TenantKind.PERSON, "\N{CYRILLIC SMALL LETTER A}"),
    Tenant(TenantKind.ORGANISATION, "*"),
    Tenant(TenantKind.PERSON, "%_[a-z]?{a}"),
)
"""Both kinds with one id, another case, a separator, a prefix, a look-alike, patterns."""

_P, _T, _A = MemoryScope.PROJECT, MemoryScope.AGENT_TYPE, MemoryScope.AGENT_INSTANCE

_PATHS = (
    (),
    ((_P, "p"),),
    ((_P, "p"), (_T, "x")),
    ((_P, "p"), (_T, "x"), (_A, "1")),
    ((_P, "p"), (_T, "x"), (_A, "2")),
    ((_P, "p"), (_A, "person:1")),  # persons within an organisation, or a person's own assistants
    ((_P, "p"), (_A, "person:2")),
    ((_P, "P"),),
    ((_P, "p;agent_type:x"),),
    ((_T, "x"),),
    ((_A, "1"),),
)

HOMES = tuple(Scope(tenant, path) for tenant in TENANTS for path in _PATHS)
"""Every scope above sessions; a session is opened below one of them."""

LEAVES = tuple(home for home in HOMES if home.level is _A and home.ancestor(_P) is not None)
"""Agents and persons in a project: nothing but their own sessions stands below them."""
