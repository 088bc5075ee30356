"""Whatever bytes reach an edge, it answers in its own form, and serves the next call."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from test_mcp_stdio import HELLO, Server, call, started

from oracles.doors import SHAPES, readings

DRAWN = 25
REFUSED, DONE = 2, 0


def drawn(seed: int, count: int = DRAWN) -> list[bytes]:
    """The shapes, and as many lines of random bytes; none of them ends a line."""
    random = Random(seed)
    made = [random.randbytes(random.randint(1, 60)) for _ in range(count)]
    return [one.replace(b"\n", b"\r") for one in (*SHAPES, *made)]


@pytest.mark.parametrize("way", ["an argument", "standard input"])
def test_the_command_line_keeps_it_or_says_what_is_wrong_with_it(
    mnemic: Any, pytestconfig: pytest.Config, way: str
) -> None:
    kept = []
    for raw in drawn(pytestconfig.getoption("--seed"), 6):
        text = readings["an argument"](raw)
        if way == "an argument":
            ended = mnemic("remember", "--json", "--", text.replace("\x00", ""))
        else:
            ended = mnemic("remember", "--json", "-", stdin=raw)
        assert ended.code in {DONE, REFUSED}, (raw, ended)
        if ended.code == REFUSED:
            assert ended.document["error"]["message"], raw
            continue
        kept.append(ended.document["id"])
        asked = mnemic("recall", "--json", "--floor", "0", "--", text.replace("\x00", ""))
        assert kept[-1] in {hit["id"] for hit in asked.document["hits"]}, raw

    assert len(kept) > 5
    assert mnemic("forget", "--yes", *dict.fromkeys(kept)).code == DONE


async def last_answer(server: Server, number: int) -> tuple[dict[str, Any], int]:
    """The answer to the call of that number, and how many came before it."""
    for before in range(DRAWN):
        answer = await server.next()
        if answer.get("id") == number:
            return answer, before
    raise AssertionError(number)


async def test_a_line_to_the_mcp_server_is_answered_and_so_is_the_next(
    environment: dict[str, str], pytestconfig: pytest.Config
) -> None:
    lines = drawn(pytestconfig.getoption("--seed"))
    asked = json.dumps(call("recall", query="QUERY")).encode()
    asked = b'{"jsonrpc":"2.0","id":%d,' + asked[1:]

    async with started({**os.environ, **environment}, "mcp", "--user", "bytes") as server:
        await server.ask(1, HELLO)
        await server.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        for number, raw in enumerate(lines, start=10):
            await server.send(raw)
            await server.send(asked.replace(b"QUERY", raw) % number if b"%" not in raw else b"")
            await server.send(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % (number + 1_000))
            answer, before = await last_answer(server, number + 1_000)
            assert answer["result"] == {}, raw
            assert before <= 2, raw
        code, rest, _ = await server.ended()

    assert (code, rest) == (0, b"")
