"""Commands that are handed a scope, and scopes in words."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from mnemic.edge.scope_options import (
    AgentOption,
    AgentTypeOption,
    OrgOption,
    ProjectOption,
    SessionOption,
    UserOption,
    scope_of,
)
from mnemic.model.scope import MemoryScope, Scope, TenantKind

__all__ = ["described", "options_of", "scoped"]

T = TypeVar("T")
_OPTIONS = {
    MemoryScope.PROJECT: "--project",
    MemoryScope.AGENT_TYPE: "--agent-type",
    MemoryScope.AGENT_INSTANCE: "--agent",
    MemoryScope.SESSION: "--session",
}
_PARAMETERS = {
    "user": UserOption,
    "org": OrgOption,
    "project": ProjectOption,
    "agent_type": AgentTypeOption,
    "agent": AgentOption,
    "session": SessionOption,
}


def scoped(*, session: bool = True) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """The command takes the scope options and is handed `scope`.

    `session=False` leaves out `--session`, for commands that name sessions in another way.
    """
    names = [name for name in _PARAMETERS if session or name != "session"]

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        signature = inspect.signature(command, eval_str=True)
        own = [given for name, given in signature.parameters.items() if name != "scope"]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=_PARAMETERS[name],
            )
            for name in names
        ]

        @wraps(command)
        def run(**given: Any) -> T:
            chosen = {name: given.pop(name, None) for name in names}
            return command(**given, scope=scope_of(**chosen))

        own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
        run.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined] # typer reads it
        return run

    return decorate


def described(scope: Scope) -> str:
    """The scope in words, from wide to narrow: `user local, project ledger`."""
    kind = "user" if scope.tenant.kind is TenantKind.PERSON else "organisation"
    parts = [f"{kind} {scope.tenant.external_id}"]
    parts += [
        f"{_OPTIONS[level].strip('-').replace('-', ' ')} {name}" for level, name in scope.path
    ]
    return ", ".join(parts)


def options_of(scope: Scope) -> str:
    """The options that name the scope, ready for a shell; the default user is left out."""
    words = []
    if scope.tenant.kind is TenantKind.ORGANISATION:
        words += ["--org", scope.tenant.external_id]
    elif scope.tenant != scope_of().tenant:
        words += ["--user", scope.tenant.external_id]
    for level, name in scope.path:
        words += [_OPTIONS[level], name]
    return shlex.join(words)
