"""Who owns a memory, and who sees it.

A tenant is a person *or* an organisation. Inside it lies a tree of five levels; a scope is a path
of that tree, and it sees itself and its ancestors, never siblings or descendants. Identifiers are
derived from the caller's own names, so no look-up stands between a name and its rows, and two
names never share an id: every part is length-prefixed before it is hashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NewType
from uuid import UUID, uuid5

from mnemic.errors import InvalidInput
from mnemic.model.normalise import is_blank

__all__ = ["MemoryScope", "Scope", "ScopeId", "Tenant", "TenantId", "TenantKind"]

TenantId = NewType("TenantId", UUID)
ScopeId = NewType("ScopeId", UUID)

MNEMIC_NAMESPACE = UUID("7d2f0c1e-0a56-5b7c-9a3e-6d6e656d6963")
EXTERNAL_ID_BYTES_MAX = 10_240


class TenantKind(StrEnum):
    """What a tenant is; never both."""

    PERSON = "person"
    ORGANISATION = "organisation"


class MemoryScope(StrEnum):
    """The five levels, from the widest to the narrowest. Global means global within the tenant."""

    GLOBAL = "global"
    PROJECT = "project"
    AGENT_TYPE = "agent_type"
    AGENT_INSTANCE = "agent_instance"
    SESSION = "session"


_DEPTH = {level: depth for depth, level in enumerate(MemoryScope)}


def _checked(field: str, value: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput("must be text", field=field)
    if "\x00" in value:
        raise InvalidInput("must not hold a NUL character; remove it", field=field)
    if is_blank(value):
        raise InvalidInput("must not be empty; leave the level out instead", field=field)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput("must not hold a lone surrogate; remove it", field=field) from None
    if size > EXTERNAL_ID_BYTES_MAX:
        raise InvalidInput(
            f"is {size} bytes long; the most is {EXTERNAL_ID_BYTES_MAX}", field=field
        )
    return value


@dataclass(frozen=True, slots=True)
class Tenant:
    """A person or an organisation, by the caller's own identifier."""

    kind: TenantKind
    external_id: str

    def __post_init__(self) -> None:
        _checked("tenant", self.external_id)

    @property
    def id(self) -> TenantId:
        """uuid5 of the kind, a unit separator and the external id."""
        return _tenant_id(self)


@dataclass(frozen=True, slots=True)
class Scope:
    """A path in a tenant's tree of scopes.

    Raises `InvalidInput` for an empty name, NUL, a lone surrogate, over 10 kB, or levels that are
    not from wide to narrow.
    """

    tenant: Tenant
    path: tuple[tuple[MemoryScope, str], ...] = ()

    def __post_init__(self) -> None:
        deepest = 0
        for level, name in self.path:
            _checked(level.value, name)
            if _DEPTH[level] <= deepest:
                raise InvalidInput(
                    "levels go from wide to narrow: project, agent_type, agent, session",
                    field=level.value,
                )
            deepest = _DEPTH[level]

    @classmethod
    def user(cls, external_id: str) -> Scope:
        """The global scope of a person's own tenant."""
        return cls(Tenant(TenantKind.PERSON, external_id))

    @classmethod
    def organisation(cls, external_id: str) -> Scope:
        """The global scope of an organisation's tenant."""
        return cls(Tenant(TenantKind.ORGANISATION, external_id))

    def project(self, name: str) -> Scope:
        """This scope, narrowed to a project."""
        return self._narrow(MemoryScope.PROJECT, name)

    def agent_type(self, name: str) -> Scope:
        """This scope, narrowed to a kind of agent."""
        return self._narrow(MemoryScope.AGENT_TYPE, name)

    def agent(self, name: str) -> Scope:
        """This scope, narrowed to one agent."""
        return self._narrow(MemoryScope.AGENT_INSTANCE, name)

    def session(self, name: str) -> Scope:
        """This scope, narrowed to one session."""
        return self._narrow(MemoryScope.SESSION, name)

    def _narrow(self, level: MemoryScope, name: str) -> Scope:
        return Scope(self.tenant, (*self.path, (level, name)))

    @property
    def level(self) -> MemoryScope:
        """The narrowest level named."""
        return self.path[-1][0] if self.path else MemoryScope.GLOBAL

    @property
    def name(self) -> str:
        """The caller's name of the narrowest level; empty for the global scope."""
        return self.path[-1][1] if self.path else ""

    @property
    def id(self) -> ScopeId:
        """uuid5 of the tenant and the length-prefixed path."""
        return _scope_id(self)

    @property
    def parent(self) -> Scope | None:
        """The next wider scope, or nothing above the global one."""
        return Scope(self.tenant, self.path[:-1]) if self.path else None

    @property
    def chain(self) -> tuple[Scope, ...]:
        """This scope and its ancestors, narrowest first; at most five."""
        return _chain(self)

    @property
    def visible_ids(self) -> list[UUID]:
        """The ids of the chain: what a statement may read."""
        return [scope.id for scope in self.chain]

    def ancestor(self, level: MemoryScope) -> Scope | None:
        """The member of the chain at `level`, if the path names it."""
        return next((scope for scope in self.chain if scope.level is level), None)


@lru_cache(maxsize=4_096)
def _tenant_id(tenant: Tenant) -> TenantId:
    return TenantId(uuid5(MNEMIC_NAMESPACE, f"{tenant.kind.value}\x1f{tenant.external_id}"))


@lru_cache(maxsize=16_384)
def _scope_id(scope: Scope) -> ScopeId:
    parts = "".join(f"{level.value}:{len(name)}:{name};" for level, name in scope.path)
    return ScopeId(uuid5(scope.tenant.id, f"scope;{parts}"))


@lru_cache(maxsize=16_384)
def _chain(scope: Scope) -> tuple[Scope, ...]:
    return tuple(
        Scope(scope.tenant, scope.path[:depth]) for depth in range(len(scope.path), -1, -1)
    )
