"""A model that sends what cannot be held is told what a Python caller is told."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client

from mnemic import Scope
from mnemic.edge.mcp.server import build_server
from oracles.answers import answer_of
from oracles.stage import Stage

GOOD: dict[str, dict[str, Any]] = {
    "remember": {"content": "Deploys are frozen on Fridays", "memory_type": "semantic"},
    "recall": {"query": "When are deploys frozen?"},
    "get_context": {"query": "When are deploys frozen?"},
}
VERBS = {"get_context": "context"}


@pytest.mark.parametrize(
    ("tool", "hostile"),
    [
        ("remember", {"content": "a\x00b"}),
        ("remember", {"content": "\u200b\u3000"}),
        ("remember", {"content": "no steps at all", "memory_type": "procedural"}),
        ("remember", {"tags": ["ok", "\u3164"]}),
        ("remember", {"idempotency_key": "\ufeff"}),
        ("recall", {"query": "\u2800"}),
        ("recall", {"query": "a\x00"}),
        ("recall", {"query": ""}),
        ("get_context", {"query": "\u2800"}),
        ("get_context", {"query": "a\x00"}),
    ],
)
async def test_the_core_error_arrives_at_a_model(
    stage: Stage, scope: Scope, tool: str, hostile: dict[str, Any]
) -> None:
    sent = GOOD[tool] | hostile
    core = await answer_of(getattr(stage.memory, VERBS.get(tool, tool))(scope=scope, **sent))

    async with Client(build_server(stage.memory, scope)) as client:
        told = await client.call_tool(tool, sent)
        control = await client.call_tool(tool, GOOD[tool])

    [said] = told.content
    assert core.refusal is not None
    assert told.is_error
    assert said.text.startswith(f"{core.refusal.code}: {core.refusal}\n")
    assert not control.is_error


async def test_a_model_is_told_what_was_kept_in_another_form(stage: Stage, scope: Scope) -> None:
    async with Client(build_server(stage.memory, scope)) as client:
        told = await client.call_tool("remember", GOOD["remember"] | {"tags": ["ops", "ops"]})

    assert told.structured_content is not None
    assert told.structured_content["notes"] == ["tags is kept as 'ops'"]
