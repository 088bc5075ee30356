"""`mnemic mcp` as a client starts it: a process with two pipes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from pydantic import SecretStr

from mnemic.edge.mcp.stdio import repeated_key
from mnemic.embedded import EmbeddedServers
from mnemic.embedded.control import guard_lives
from mnemic.manager import MemoryManager
from mnemic.model.scope import Scope
from mnemic.settings import DatabaseSettings, MemorySettings
from oracles.doors import drawn

PATIENCE_SECONDS = 60.0
DRAWN = 25
LINE_BYTES_MAX = 64 * 1024 * 1024
COMMAND = [sys.executable, "-m", "mnemic.edge.main"]

HELLO = {
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}


class Server:
    """A started server; every line that it has written so far was JSON-RPC."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await self.process.stdout.readline()
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    async def ask(self, number: int, request: dict[str, Any]) -> dict[str, Any]:
        await self.send(json.dumps({"jsonrpc": "2.0", "id": number, **request}).encode())
        answer = await self.next()
        assert answer["id"] == number
        return answer

    async def ended(self) -> tuple[int, bytes, str]:
        """Exit code, what was still written, and what was logged; its input ends first."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            rest, logged = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, rest, logged.decode()


@asynccontextmanager
async def started(environment: dict[str, str], *arguments: str) -> AsyncIterator[Server]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        limit=LINE_BYTES_MAX,
    )
    try:
        yield Server(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.fixture
def environment(database: Any, servers: EmbeddedServers) -> dict[str, str]:
    return {
        **os.environ,
        "MEM_DATABASE_URL": database.app_url,
        "MEM_REDIS_URL": servers.redis_url,
        "MEM_DATABASE__REQUIRE_DURABLE": "false",
        "MEM_CONTEXT__DEADLINE_MS": "60000",
    }


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may pass through, and that is gone after the test."""
    made = Path(tempfile.mkdtemp(prefix="mnemic-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


async def test_a_client_of_either_protocol_remembers_recalls_and_forgets(
    environment: dict[str, str],
) -> None:
    seen = {}
    for mode in ("auto", "legacy"):
        server = StdioServerParameters(
            command=COMMAND[0],
            args=[*COMMAND[1:], "mcp", "--user", "u-1", "--project", mode],
            env=environment,
        )

        async with Client(server, mode=mode) as client:
            assert client.server_info is not None
            name = client.server_info.name
            kept = await client.call_tool(
                "remember",
                {"memory_type": "semantic", "content": f"The {mode} lamp is in the attic"},
            )
            found = await client.call_tool("recall", {"query": "where is the lamp?"})
            assert kept.structured_content is not None
            gone = await client.call_tool("forget", {"ids": [kept.structured_content["id"]]})
            after = await client.call_tool("recall", {"query": "where is the lamp?"})

        assert found.structured_content is not None
        assert gone.structured_content == {"forgotten": 1, "counts": {"fact": 1}, "reworded": 0}
        assert after.structured_content is not None
        assert after.structured_content["hits"] == []
        seen[mode] = (name, [hit["text"] for hit in found.structured_content["hits"]])

    assert seen == {
        "auto": ("mnemic", ["The auto lamp is in the attic"]),
        "legacy": ("mnemic", ["The legacy lamp is in the attic"]),
    }


async def test_a_prompt_section_and_the_newest_of_a_filter_come_over_the_wire(
    environment: dict[str, str],
) -> None:
    options = ["--user", "u-1", "--project", "section"]
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", *options], env=environment
    )

    async with Client(server) as client:
        for content in ("The lamp is in the attic", "The spade is in the shed"):
            told = {"memory_type": "semantic", "content": content, "tags": [content[4:8]]}
            await client.call_tool("remember", told)
        made = await client.call_tool("get_context", {"query": "where is the lamp?", "budget": 80})
        of_tag = await client.call_tool("recall", {"query": "", "filters": {"tags": "spad"}})
        wrong = await client.call_tool("get_context", {"query": "lamp", "budget": 0})

    section, found = made.structured_content, of_tag.structured_content
    assert section is not None
    assert "The lamp is in the attic" in section["text"]
    assert 0 < section["tokens"] <= section["budget"] == 80
    assert section["degraded"] == []
    assert found is not None
    assert [hit["text"] for hit in found["hits"]] == ["The spade is in the shed"]
    assert wrong.is_error


async def test_only_the_protocol_is_written_and_all_that_is_sent_is_answered_at_the_end_too(
    environment: dict[str, str],
) -> None:
    deep = b'{"jsonrpc":"2.0","id":14,"method":"tools/list","params":%s}'
    lines = {
        b"no json": (None, -32700),
        b"[1]": (None, -32600),
        b'{"jsonrpc":"2.0","id":12}': (None, -32600),
        b'{"jsonrpc":"2.0","id":13,"method":"tools/call","params":{"name":"recall","arguments":'
        b'{"query":"half an emoji \\ud83d"}}}': (13, -32700),
        deep % (b"[" * 5_000 + b"]" * 5_000): (None, -32700),
        b'{"jsonrpc":"2.0","id":15,"method":"tools/list","params":{"n":%s}}' % (b"7" * 5_000): (
            15,
            -32700,
        ),
        b'{"jsonrpc":"2.0","id":18,"method":"tools/call","params":{"name":"recall","arguments":'
        b'{"query":"one","query":"two"}}}': (18, -32700),
        b'{"jsonrpc":"2.0","id":16,"method":"tools/list","params":{"n":"\xff"}}': (16, -32700),
        b'{"jsonrpc":"2.0","id":17,"method":"x","params":{"n":"%s"}}' % (b"x" * (17 << 20)): (
            None,
            -32700,
        ),
    }

    async with started(environment, "--log-level", "debug", "mcp") as server:
        hello = await server.ask(1, HELLO)
        await server.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        answers = {}
        for line in lines:
            await server.send(b"\n" + line)
            answers[line] = await server.next()
        nan = json.dumps(call("remember", memory_type="semantic", content="x", importance=None))
        await server.send(b'{"jsonrpc":"2.0","id":20,' + nan.replace("null", "NaN").encode()[1:])
        not_a_number = await server.next()
        whole = call("remember", memory_type="semantic", content="A whole emoji: 😀")
        await server.send(json.dumps({"jsonrpc": "2.0", "id": 21, **whole}).encode())
        code, rest, logged = await server.ended()

    assert hello["result"]["serverInfo"]["name"] == "mnemic"
    assert "instruction" in hello["result"]["instructions"]
    [twice] = [answer for answer in answers.values() if answer["id"] == 18]
    assert "'query' twice; keep one" in twice["error"]["message"]
    for line, (number, error) in lines.items():
        assert answers[line]["id"] == number, line[:80]
        assert answers[line]["error"]["code"] == error, line[:80]
    assert not_a_number["result"]["isError"] is True
    assert "importance" in not_a_number["result"]["content"][0]["text"]
    at_last = json.loads(rest)
    assert at_last["id"] == 21
    assert at_last["result"]["structuredContent"]["created"] is True
    assert code == 0
    events = [json.loads(line)["event"] for line in logged.splitlines()]
    assert any("Initializing server" in event for event in events)


async def answers_until(server: Server, number: int) -> list[dict[str, Any]]:
    """What is answered, the call of that number last."""
    answers = [await server.next()]
    while answers[-1].get("id") != number:
        answers.append(await server.next())
    return answers


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


async def test_whatever_bytes_come_they_are_answered_and_so_is_the_next_call(
    environment: dict[str, str], pytestconfig: pytest.Config
) -> None:
    drawn_lines = drawn(pytestconfig.getoption("--seed"), count=DRAWN)
    form = json.dumps({"jsonrpc": "2.0", "id": 0, **call("recall", query="QUERY")}).encode()
    asked = {
        number: form.replace(b'"id": 0', b'"id": %d' % number).replace(b"QUERY", raw)
        for number, raw in enumerate(drawn_lines, start=10)
    }

    answers: list[dict[str, Any]] = []
    async with started(environment, "mcp", "--user", "bytes") as server:
        await server.ask(1, HELLO)
        await server.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        for number, raw in enumerate(drawn_lines, start=10):
            for line in (
                raw,
                asked[number],
                b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % -number,
            ):
                await server.send(line)
            answers += await answers_until(server, -number)
        code, rest, _ = await server.ended()

    answers += map(json.loads, rest.splitlines())
    told = Counter(answer.get("id") for answer in answers)
    readable = [number for number, line in asked.items() if is_json(line)]
    assert code == 0
    assert len(readable) > len(asked) // 3
    assert {number: told[number] for number in readable} == dict.fromkeys(readable, 1)
    assert {number: told[-number] for number in asked} == dict.fromkeys(asked, 1)
    assert told[None] <= 2 * len(asked)


async def test_the_scope_is_what_the_start_said(environment: dict[str, str], database: Any) -> None:
    levels = ["--project", "p", "--agent-type", "t", "--agent", "a", "--session", "s"]
    narrow = Scope.organisation("acme").project("p").agent_type("t").agent("a").session("s")
    settings = MemorySettings(
        database_url=SecretStr(environment["MEM_DATABASE_URL"]),
        redis_url=SecretStr(environment["MEM_REDIS_URL"]),
        database=DatabaseSettings(require_durable=False, acquire_timeout_seconds=20),
    )

    async with started({**environment, "MEM_USER": "u"}, "mcp", "--org", "acme", *levels) as server:
        await server.ask(1, HELLO)
        kept = await server.ask(
            2, call("remember", memory_type="episodic", content="The lamp is in the attic")
        )

    identity = kept["result"]["structuredContent"]["id"]
    async with MemoryManager.open(settings) as memory:
        seen = {
            scope: [str(hit.id) for hit in (await memory.recall("the lamp", scope=scope)).hits]
            for scope in (narrow, narrow.parent, Scope.user("u"), Scope.user("acme"))
            if scope is not None
        }
    assert seen.pop(narrow) == [identity]
    assert set(map(tuple, seen.values())) == {()}


async def test_a_signal_ends_it_while_the_client_waits_and_its_servers_stop(place: Path) -> None:
    folder = place / "data"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MEM_")},
        "MEM_EMBEDDED__DATA_DIR": str(folder),
    }

    async with started(environment, "mcp") as server:
        await server.ask(1, HELLO)
        await server.ask(2, call("remember", memory_type="semantic", content="The sun shines"))
        served = guard_lives(folder)
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            code = await server.process.wait()
        _, rest, logged = await server.ended()

    assert served
    assert (code, rest) == (0, b"")
    assert "Traceback" not in logged
    assert not guard_lives(folder)


@pytest.mark.parametrize(
    ("before", "arguments", "code", "said"),
    [
        ("", ["--user", ""], 2, "must not be empty"),
        ("", ["--user", "u", "--org", "o"], 2, "not both"),
        ("sys.modules['mcp'] = None", [], 4, "pip install 'mnemic[mcp]'"),
    ],
    ids=["blank user", "user and organisation", "extra not installed"],
)
def test_what_stands_in_the_way_is_said_on_standard_error(
    before: str, arguments: list[str], code: int, said: str
) -> None:
    program = f"import sys; {before}\nfrom mnemic.edge.main import run\nrun()"

    ended = subprocess.run(
        [sys.executable, "-c", program, "mcp", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == code
    assert ended.stdout == ""
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('{"a":1,"a":1}', "a"),
        ('{"p":{"q":[{"content":"x","other":1,"content":"y"}]}}', "content"),
        ('{"a":{"a":1},"b":[{"a":1},{"a":1}]}', None),
        ('{"n":%s}' % ("7" * 5_000), None),
        ("[" * 5_000, None),
        ("no json", None),
    ],
    ids=range(6),
)
def test_a_key_that_is_given_twice_is_found_at_any_depth(line: str, key: str | None) -> None:
    assert repeated_key(line) == key
