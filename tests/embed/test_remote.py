"""The OpenAI-compatible embedder against a real server that answers well or badly."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import subprocess
import sys
import textwrap
import threading
from random import Random
from typing import Any

import pytest

from mnemic.embed import OpenAIEmbedder
from mnemic.errors import ConfigurationError, EmbedderUnavailable


def unit(values: list[float]) -> list[float]:
    norm = math.hypot(*values)
    return [value / norm for value in values]


async def test_packed_vectors_come_back_in_order_at_unit_length(endpoint: Any, remote: Any) -> None:
    texts = ["first", "second", "第三"]

    vectors = await remote.embed(texts)

    assert [list(vector) for vector in vectors] == [
        pytest.approx(unit(endpoint.raw_vector(text))) for text in texts
    ]
    assert endpoint.bodies == [
        {"model": "toy", "input": texts, "dimensions": 8, "encoding_format": "base64"}
    ]


async def test_plain_numbers_are_read_as_well(endpoint: Any, remote: Any) -> None:
    endpoint.answer = endpoint.floats

    (vector,) = await remote.embed(["first"])

    assert list(vector) == pytest.approx(unit(endpoint.raw_vector("first")))
    assert vector.typecode == "f"


async def test_vectors_are_put_in_order_by_their_index(endpoint: Any, remote: Any) -> None:
    one, two = endpoint.raw_vector("one"), endpoint.raw_vector("two")
    endpoint.always(endpoint.answer_with([two, one], indices=[1, 0]))

    vectors = await remote.embed(["one", "two"])

    assert [list(vector) for vector in vectors] == [
        pytest.approx(unit(one)),
        pytest.approx(unit(two)),
    ]


@pytest.mark.parametrize("indices", [[0], [0, 0], [1, 2], [None, None], [0, 1, 2], [0, 1, 1], []])
async def test_an_answer_without_one_vector_a_text_is_refused_whole(
    endpoint: Any, remote: Any, indices: list[Any]
) -> None:
    vector = endpoint.raw_vector("some")
    endpoint.always(endpoint.answer_with([vector] * len(indices), indices=indices))

    with pytest.raises(EmbedderUnavailable, match=r"vectors for 2 texts|OpenAI's form"):
        await remote.embed(["one", "two"])


@pytest.mark.parametrize(
    ("vector", "words"),
    [
        ([1.0] * 7, "7 numbers"),
        ([1.0] * 9, "9 numbers"),
        ([math.nan] + [1.0] * 7, "NaN"),
        ([math.inf] + [1.0] * 7, "not finite"),
        ([0.0] * 8, "zero"),
        (["x"] + [1.0] * 7, "not a number"),
        (None, "OpenAI's form"),
        ("AAA", "OpenAI's form"),
        ("AAAAAAA=", "OpenAI's form"),
        ("AACAPwAAgD8=", "2 numbers"),
    ],
)
async def test_a_vector_that_cannot_be_used_is_refused(
    endpoint: Any, remote: Any, vector: Any, words: str
) -> None:
    good = endpoint.raw_vector("good")
    endpoint.always(endpoint.answer_with([good, vector]))

    with pytest.raises(EmbedderUnavailable, match=words) as caught:
        await remote.embed(["good", "bad"])

    assert caught.value.retryable


@pytest.mark.parametrize("payload", [b"<html>hello</html>", b"", b"[]", b"{}", b'{"data": 7}'])
async def test_an_answer_in_another_form_says_where_to_look(
    endpoint: Any, remote: Any, payload: bytes
) -> None:
    endpoint.always((200, payload))

    with pytest.raises(EmbedderUnavailable, match=r"embedding\.base_url"):
        await remote.embed(["text"])


@pytest.mark.parametrize("status", [200, 400, 404, 500])
async def test_no_bytes_of_a_server_reach_a_caller_as_anything_but_unavailable(
    endpoint: Any, remote: Any, pytestconfig: pytest.Config, status: int
) -> None:
    random = Random(pytestconfig.getoption("--seed"))
    whole = json.dumps(endpoint.answer_with([endpoint.raw_vector("text")])[1]).encode()
    answers = [random.randbytes(random.randint(0, 60)) for _ in range(10)]
    for _ in range(30):
        at = random.randrange(len(whole))
        answers.append(whole[:at] + random.choice([b"", b"\xff", b"null", b"1e999", b"[", b'"']))

    numbers = json.dumps(endpoint.raw_vector("text")).encode()
    answers += [b"[" * 5_000, b"9" * 5_000, whole.replace(numbers, b"[" + b"9" * 4_000 + b"]")]
    for answer in answers:
        endpoint.always((status, answer))
        with pytest.raises((EmbedderUnavailable, ConfigurationError)) as caught:
            await remote.embed(["text"])
        assert 0 < len(str(caught.value)) < 600

    endpoint.always((200, whole))
    assert len(await remote.embed(["text"])) == 1


async def test_a_failing_server_is_asked_again(endpoint: Any) -> None:
    answers = iter([endpoint.refusal(500, "oops"), endpoint.refusal(429, "slow down")])
    endpoint.answer = lambda body: next(answers, None) or endpoint.floats(body)
    endpoint.headers = {"retry-after-ms": "1"}
    embedder = OpenAIEmbedder(model="toy", dimensions=8, base_url=endpoint.url, retry_max=2)

    (vector,) = await embedder.embed(["text"])

    assert list(vector) == pytest.approx(unit(endpoint.raw_vector("text")))
    assert len(endpoint.bodies) == 3
    await embedder.close()


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_server_that_keeps_failing_is_unavailable(
    endpoint: Any, remote: Any, status: int
) -> None:
    endpoint.always(endpoint.refusal(status, "not now"))

    with pytest.raises(EmbedderUnavailable, match=f"HTTP {status}.*not now"):
        await remote.embed(["text"])


@pytest.mark.parametrize(
    ("status", "setting"),
    [
        (401, "embedding.api_key"),
        (403, "embedding.api_key"),
        (404, "embedding.model"),
        (405, "embedding.base_url"),
    ],
)
async def test_a_call_that_will_never_be_taken_names_the_setting(
    endpoint: Any, remote: Any, status: int, setting: str
) -> None:
    endpoint.always(endpoint.refusal(status, "no"))

    with pytest.raises(ConfigurationError, match=setting):
        await remote.embed(["text"])


async def test_a_slow_server_is_given_up(endpoint: Any) -> None:
    endpoint.hold()
    embedder = OpenAIEmbedder(
        model="toy", dimensions=8, base_url=endpoint.url, timeout_seconds=0.2, retry_max=0
    )

    with pytest.raises(EmbedderUnavailable, match="in time"):
        await embedder.embed(["text"])

    await embedder.close()


async def test_a_server_that_asks_for_two_minutes_does_not_get_them(endpoint: Any) -> None:
    endpoint.always(endpoint.refusal(503, "come back later"))
    endpoint.headers = {"retry-after": "120"}
    embedder = OpenAIEmbedder(
        model="toy", dimensions=8, base_url=endpoint.url, timeout_seconds=0.2, retry_max=1
    )

    async with asyncio.timeout(30):
        with pytest.raises(EmbedderUnavailable, match="in time"):
            await embedder.embed(["text"])

    await embedder.close()


async def test_nobody_listening_is_unavailable_and_the_message_holds_no_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    embedder = OpenAIEmbedder(
        model="toy", dimensions=8, base_url=f"http://me:hush@127.0.0.1:{port}", retry_max=0
    )

    with pytest.raises(EmbedderUnavailable, match=r"127\.0\.0\.1") as caught:
        await embedder.embed(["text"])

    assert "hush" not in str(caught.value)
    await embedder.close()


async def test_one_text_that_is_too_long_is_cut_and_the_others_are_not(
    endpoint: Any, remote: Any
) -> None:
    window = 2_000
    endpoint.answer = lambda body: (
        endpoint.refusal(400, "maximum context length")
        if any(len(text) > window for text in body["input"])
        else endpoint.floats(body)
    )
    texts = [f"text {number}" for number in range(10)]
    texts[4] = "long " * 40_000

    vectors = await remote.embed(texts)

    expected = [text[: 200_000 >> 7] for text in texts]
    assert [list(vector) for vector in vectors] == [
        pytest.approx(unit(endpoint.raw_vector(text))) for text in expected
    ]
    assert len(endpoint.bodies) < 20


async def test_a_short_text_that_is_refused_is_not_cut(endpoint: Any, remote: Any) -> None:
    endpoint.always(endpoint.refusal(400, "contents not allowed"))

    with pytest.raises(EmbedderUnavailable, match=r"HTTP 400.*contents not allowed"):
        await remote.embed(["short"])

    assert endpoint.inputs == [["short"]]


async def test_a_model_of_one_size_is_not_told_it_again(endpoint: Any) -> None:
    embedder = OpenAIEmbedder(model="toy", dimensions=8, base_url=endpoint.url)
    endpoint.answer = lambda body: (
        endpoint.refusal(400, "this model does not support changing dimensions")
        if "dimensions" in body
        else endpoint.floats(body)
    )

    await embedder.embed(["one"])
    await embedder.embed(["two"])

    assert endpoint.inputs == [["one"], ["one"], ["two"]]
    assert ["dimensions" in body for body in endpoint.bodies] == [True, False, False]
    await embedder.close()


async def test_many_texts_go_in_batches(endpoint: Any) -> None:
    embedder = OpenAIEmbedder(model="toy", dimensions=8, base_url=endpoint.url, batch_max=2)

    vectors = await embedder.embed(["a", "b", "c", "d", "e"])

    assert endpoint.inputs == [["a", "b"], ["c", "d"], ["e"]]
    assert list(vectors[4]) == pytest.approx(unit(endpoint.raw_vector("e")))
    await embedder.close()


async def test_no_texts_need_no_call(endpoint: Any, remote: Any) -> None:
    vectors = await remote.embed([])

    assert vectors == []
    assert endpoint.bodies == []


async def test_text_that_no_server_takes_does_not_fail_its_neighbours(
    endpoint: Any, remote: Any
) -> None:
    endpoint.answer = lambda body: (
        endpoint.refusal(400, "empty input")
        if not all(text.strip() for text in body["input"])
        else endpoint.floats(body)
    )

    vectors = await remote.embed(["", "\u200b \n", "half \ud83d", "<|endoftext|>"])

    assert len(vectors) == 4
    assert endpoint.inputs == [["-", "-", "half ?", "<|endoftext|>"]]


async def test_the_key_of_the_environment_is_never_sent(
    endpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "somebody-elses")
    embedder = OpenAIEmbedder(model="toy", dimensions=8, base_url=endpoint.url)

    await embedder.embed(["text"])

    assert endpoint.keys == ["Bearer none"]
    await embedder.close()


async def test_the_key_that_is_set_is_sent(endpoint: Any) -> None:
    embedder = OpenAIEmbedder(
        model="toy", dimensions=8, base_url=endpoint.url, api_key="the-tenants-own"
    )

    await embedder.embed(["text"])

    assert endpoint.keys == ["Bearer the-tenants-own"]
    await embedder.close()


def test_it_serves_one_loop_after_another(endpoint: Any) -> None:
    embedder = OpenAIEmbedder(model="toy", dimensions=8, base_url=endpoint.url)

    async def twice() -> list[float]:
        await embedder.embed(["first"])
        (vector,) = await embedder.embed(["text"])
        await embedder.close()
        return list(vector)

    answers = [asyncio.run(twice()), asyncio.run(twice())]

    assert answers[0] == answers[1] == pytest.approx(unit(endpoint.raw_vector("text")))
    assert len(endpoint.connections) == 2


async def test_closing_closes_the_clients_of_other_loops(endpoint: Any) -> None:
    embedder = OpenAIEmbedder(model="toy", dimensions=8, base_url=endpoint.url)
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    await embedder.embed(["here"])
    asyncio.run_coroutine_threadsafe(embedder.embed(["there"]), other).result(timeout=10)
    clients = list(embedder._clients.values())

    await embedder.close()

    assert len(clients) == 2
    assert all(client.is_closed() for client in clients)
    other.call_soon_threadsafe(other.stop)
    thread.join(timeout=10)
    other.close()


def test_a_forked_child_opens_a_client_of_its_own(endpoint: Any) -> None:
    program = f"""
        import asyncio, os
        from mnemic.embed import OpenAIEmbedder

        embedder = OpenAIEmbedder(model="toy", dimensions=8, base_url={endpoint.url!r})

        async def in_child():
            await embedder.embed(["in the child"])
            await embedder.close()

        async def in_parent():
            await embedder.embed(["in the parent"])
            embedder._opening.acquire()  # as another thread of the parent may hold it
            child = os.fork()
            if child == 0:
                asyncio._set_running_loop(None)
                asyncio.run(asyncio.wait_for(in_child(), 10))
                os._exit(0)
            print(os.waitpid(child, 0)[1], flush=True)
            os._exit(0)

        asyncio.run(in_parent())
    """

    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.stdout.strip() == "0", ran.stderr
    assert endpoint.inputs == [["in the parent"], ["in the child"]]
    assert len(endpoint.connections) == 2


@pytest.mark.parametrize("base_url", ["localhost:11434", "ftp://host", "http://", "not a url", ""])
def test_an_address_that_is_none_is_refused_at_once(base_url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"embedding\.base_url"):
        OpenAIEmbedder(model="toy", dimensions=8, base_url=base_url)


def test_openai_itself_wants_a_key() -> None:
    with pytest.raises(ConfigurationError, match=r"embedding\.api_key"):
        OpenAIEmbedder(model="text-embedding-3-small", dimensions=1536)
