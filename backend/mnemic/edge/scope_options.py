"""Whose memory a command works in: the options that commands share, and the scope they name."""

from __future__ import annotations

from typing import Annotated

import typer

from mnemic.errors import InvalidInput
from mnemic.model.scope import Scope

__all__ = [
    "AgentOption",
    "AgentTypeOption",
    "OrgOption",
    "ProjectOption",
    "SessionOption",
    "UserOption",
    "scope_of",
]

DEFAULT_USER = "local"

UserOption = Annotated[
    str | None,
    typer.Option("--user", help=f"Whose memory. Default: MEM_USER, else “{DEFAULT_USER}”."),
]
OrgOption = Annotated[
    str | None, typer.Option("--org", help="An organisation's memory instead of a person's.")
]
ProjectOption = Annotated[str | None, typer.Option("--project", help="Within a project.")]
AgentTypeOption = Annotated[
    str | None, typer.Option("--agent-type", help="Within a kind of agent.")
]
AgentOption = Annotated[str | None, typer.Option("--agent", help="Within one agent.")]
SessionOption = Annotated[str | None, typer.Option("--session", help="Within one session.")]


def scope_of(
    *,
    user: str | None = None,
    org: str | None = None,
    project: str | None = None,
    agent_type: str | None = None,
    agent: str | None = None,
    session: str | None = None,
) -> Scope:
    """The scope that the options name; without any, the global scope of `MEM_USER` or "local".

    `org` outranks `MEM_USER`. Raises `InvalidInput` for both `user` and `org`, and for a name that
    no scope can have.
    """
    if org is not None and user is not None:
        raise InvalidInput("give --user or --org, not both", field="org")
    if org is not None:
        scope = Scope.organisation(org)
    else:
        if user is None:
            from mnemic.settings import environment  # noqa: PLC0415 - `mnemic --help` must not load it

            user = environment().get("MEM_USER", DEFAULT_USER)
        if not user.strip():
            raise InvalidInput(
                "must not be empty; name somebody with --user, or unset MEM_USER", field="user"
            )
        scope = Scope.user(user)
    if project is not None:
        scope = scope.project(project)
    if agent_type is not None:
        scope = scope.agent_type(agent_type)
    if agent is not None:
        scope = scope.agent(agent)
    return scope if session is None else scope.session(session)
