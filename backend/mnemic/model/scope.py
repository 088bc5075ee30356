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
from mnemic.model.normalise import held_text, is_blank, shown

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
_STEP_PARTS = 2


def _checked(field: str, value: str) -> str:
    if is_blank(held_text(value, field=field)):
        raise InvalidInput("must not be empty or blank; leave the level out instead", field=field)
    size = len(value.encode())
    if size > EXTERNAL_ID_BYTES_MAX:
        raise InvalidInput(
            f"is {size} bytes long; the most is {EXTERNAL_ID_BYTES_MAX}. Use a digest of it",
            field=field,
        )
    return value


@dataclass(frozen=True, slots=True)
class Tenant:
    """A person or an organisation, by the caller's own identifier."""

    kind: TenantKind
    external_id: str

    def __post_init__(self) -> None:
        if type(self.kind) is not TenantKind:
            object.__setattr__(self, "kind", _checked_kind(self.kind))
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
        if not isinstance(self.tenant, Tenant):
            raise InvalidInput(
                "must be a Tenant; use Scope.user('…') or Scope.organisation('…')", field="tenant"
            )
        if not _is_path(self.path):
            object.__setattr__(self, "path", _checked_path(self.path))
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


def _checked_kind(kind: object) -> TenantKind:
    try:
        return TenantKind(kind)  # type: ignore[arg-type]
    except ValueError:
        raise InvalidInput(
            f"the kind must be person or organisation, not {shown(kind)}", field="tenant"
        ) from None


def _is_path(path: object) -> bool:
    return type(path) is tuple and all(
        type(step) is tuple and len(step) == _STEP_PARTS and type(step[0]) is MemoryScope
        for step in path
    )


def _checked_path(path: object) -> tuple[tuple[MemoryScope, str], ...]:
    """The path by the levels' own names, as JSON has them."""
    checked = []
    for step in path if isinstance(path, (list, tuple)) else [path]:
        if not isinstance(step, (list, tuple)) or len(step) != _STEP_PARTS:
            raise InvalidInput("the path must be pairs of a level and a name", field="scope")
        try:
            checked.append((MemoryScope(step[0]), step[1]))
        except ValueError:
            raise InvalidInput(
                f"the level must be one of {', '.join(MemoryScope)}, not {shown(step[0])}",
                field="scope",
            ) from None
    return tuple(checked)


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
