"""`mnemic mcp`: memory for agents over standard input and output."""

from __future__ import annotations

from importlib.util import find_spec

import typer

from mnemic.edge.scope_options import (
    AgentOption,
    AgentTypeOption,
    OrgOption,
    ProjectOption,
    SessionOption,
    UserOption,
    scope_of,
)
from mnemic.errors import ConfigurationError

__all__ = ["add_commands"]


def add_commands(app: typer.Typer) -> None:
    """`app` knows `mcp`."""
    app.command("mcp")(serve_mcp)


def serve_mcp(
    *,
    user: UserOption = None,
    org: OrgOption = None,
    project: ProjectOption = None,
    agent_type: AgentTypeOption = None,
    agent: AgentOption = None,
    session: SessionOption = None,
) -> None:
    """Serve memory to one agent over standard input and output (Model Context Protocol).

    The agent's scope is fixed by these options; no call can leave it. Ends when its input ends,
    or by SIGTERM.
    """
    scope = scope_of(
        user=user,
        org=org,
        project=project,
        agent_type=agent_type,
        agent=agent,
        session=session,
    )
    if find_spec("mcp") is None:
        raise ConfigurationError(
            "`mnemic mcp` needs the MCP SDK, which is not installed; "
            "install it with: pip install 'mnemic[mcp]'"
        )
    import asyncio  # noqa: PLC0415 - as below

    from mnemic.edge.mcp.serving import serve  # noqa: PLC0415 - `mnemic --help` must not load it
    from mnemic.settings_reading import read_settings  # noqa: PLC0415 - as above

    asyncio.run(serve(read_settings(), scope))
