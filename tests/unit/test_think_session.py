"""A finished session told by rules: title, summary, topics, outcome and importance."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import InvalidInput
from mnemic.model.episode import EpisodeDraft, Outcome
from mnemic.model.transcript import Utterance, read
from mnemic.model.turn import TurnCreate
from mnemic.think import RulesThinker, SessionRecord, Thinker
from mnemic.think.rules import draft_of
from mnemic.think.sentences import sentences_of
from mnemic.think.titles import size_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "conversation.ndjson"
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def a_session(*said: str | tuple[str, str], **known: object) -> SessionRecord:
    """Turns from texts (by User) or pairs of role and text, a minute apart."""
    turns = []
    for place, one in enumerate(said):
        role, text = ("user", one) if isinstance(one, str) else one
        turns.append(
            TurnCreate(
                text=text,
                occurred_at=MONDAY + timedelta(minutes=place),
                actor=role.capitalize(),
                role=role,
            )
        )
    return SessionRecord(turns=tuple(turns), **known)  # type: ignore[arg-type]


def example_sessions() -> dict[str, SessionRecord]:
    turns = [entry for entry in read(EXAMPLE) if isinstance(entry, Utterance)]
    return {
        name: SessionRecord(turns=tuple(utterance.turn for utterance in group))
        for name, group in groupby(turns, key=lambda utterance: utterance.session)
    }


@pytest.fixture(scope="module")
def drafts() -> dict[str, EpisodeDraft]:
    return {name: draft_of(session) for name, session in example_sessions().items()}


def test_a_title_has_five_to_ten_words_of_the_session(drafts: dict[str, EpisodeDraft]) -> None:
    titles = {name: draft.title for name, draft in drafts.items()}

    assert titles == {
        "choosing-a-database": "Starting the ledger service: it records every charge",
        "deploy-pipeline": "Set up how the ledger gets deployed",
        "march-release": "Release day: version 1.4 of the ledger",
        "march-review": "Write up the incident of 17 March",
        "queue-change": "What do we do with the receipt jobs",
        "april-release": "Version 1.5 is due today at 10:00",
    }


def test_a_summary_is_two_or_three_whole_sentences_with_their_speakers(
    drafts: dict[str, EpisodeDraft],
) -> None:
    sessions = example_sessions()

    for name, draft in drafts.items():
        written = {text for turn in sessions[name].turns for text in sentences_of(turn.text)}
        told = [
            line.removeprefix("User: ").removeprefix("Assistant: ")
            for line in sentences_of(draft.summary)
        ]
        assert 2 <= len(told) <= 3
        assert set(told) <= written
        assert draft.summary.startswith(("User: ", "Assistant: "))


def test_a_summary_tells_what_was_decided_and_what_failed(drafts: dict[str, EpisodeDraft]) -> None:
    assert "We decided to use PostgreSQL" in drafts["choosing-a-database"].summary
    assert "we now use Valkey instead of RabbitMQ" in drafts["queue-change"].summary
    assert "38 % of the requests to /refunds end in a timeout" in drafts["march-release"].summary


def test_topics_are_three_to_seven_things_that_were_spoken_of(
    drafts: dict[str, EpisodeDraft],
) -> None:
    assert all(3 <= len(draft.key_topics) <= 7 for draft in drafts.values())
    assert {"PostgreSQL", "foreign keys", "MongoDB"} <= set(
        drafts["choosing-a-database"].key_topics
    )
    assert {"Valkey", "RabbitMQ", "outbox table"} <= set(drafts["queue-change"].key_topics)
    assert {"migration", "error rate"} <= set(drafts["march-release"].key_topics)


def test_outcomes_lessons_tools_and_intents_of_the_example(drafts: dict[str, EpisodeDraft]) -> None:
    assert {name for name, draft in drafts.items() if draft.outcome is Outcome.FAILURE} == {
        "march-release"
    }
    assert drafts["march-review"].lessons_learned == (
        (
            "Lesson learned: build indexes concurrently, and never let a migration hold a lock for "
            "more than five seconds."
        ),
    )
    assert drafts["march-release"].tools_used == (
        "ci_status",
        "metrics_query",
        "sql_query",
        "rollback",
    )
    assert drafts["choosing-a-database"].user_intents == ("choose option", "remember preference")
    assert "release software" in drafts["march-release"].user_intents


async def test_the_thinker_gives_what_the_rules_give() -> None:
    thinker: Thinker = RulesThinker()
    session = a_session("I prefer tea.", ("assistant", "Noted."))

    draft = await thinker.summarise(session)

    assert draft == draft_of(session)
    facts = thinker.extract_facts("I prefer tea.", actor="User", occurred_at=MONDAY)
    assert [fact.object for fact in facts] == ["tea"]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("hi", "Untitled session of 2 March 2026"),
        ("Fix the build", "Fix the build: session of 2 March 2026"),
        ("\u4f60\u597d", "\u4f60\u597d: session of 2 March 2026"),
        ("\U0001f680", "\U0001f680: session of 2 March 2026"),
        ("x" * 50_000, "Untitled session of 2 March 2026"),
        ("```\nx = 1\n```", "Untitled session of 2 March 2026"),
        (
            (
                "Hey, can you please help me to set up {name} and <b>bold</b> for the staging "
                "server, because it is slow?"
            ),
            "Set up {name} and <b>bold</b> for the staging server",
        ),
        (
            "We want to compare the three queue libraries that we looked at in the last of all the",
            "Compare the three queue libraries that we looked",
        ),
        (
            (
                "\u6211\u4eec\u51b3\u5b9a\u7528PostgreSQL\u5b58\u50a8\u8d26\u76ee\u6570\u636e\uff0c"
                "\u56e0\u4e3a\u9000\u6b3e\u9700\u8981\u4e8b\u52a1\u652f\u6301\u548c\u7ea6\u675f\u3002"
            ),
            "\u6211\u4eec\u51b3\u5b9a\u7528PostgreSQL\u5b58\u50a8\u8d26\u76ee\u6570\u636e",
        ),
    ],
)
def test_a_title_of_one_turn(said: str, title: str) -> None:
    assert draft_of(a_session(said)).title == title


def test_a_task_gives_the_title() -> None:
    draft = draft_of(a_session("hello", task="Migrate the billing reports to the new warehouse"))

    assert draft.title == "Migrate the billing reports to the new warehouse"


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (["hi"], "hi. The session of 2 March 2026 has 1 turn."),
        (["hi", ("assistant", "Hello!")], "User: hi. The session of 2 March 2026 has 2 turns."),
        (
            ["```\nx = 1\n```"],
            "What was said is code, or too long to quote. The session of 2 March 2026 has 1 turn.",
        ),
        (
            ["The cache is cold.", ("assistant", "I will warm the cache up.")],
            "User: The cache is cold. Assistant: I will warm the cache up.",
        ),
    ],
)
def test_a_summary_of_a_tiny_session(said: list[str | tuple[str, str]], summary: str) -> None:
    assert draft_of(a_session(*said)).summary == summary


def test_a_sentence_that_is_too_long_is_never_cut() -> None:
    long = "We looked at " + ", ".join(f"option {n}" for n in range(60)) + "."

    draft = draft_of(a_session(long, "Then we chose the first option of all."))

    assert "option 1" not in draft.summary
    assert "Then we chose the first option of all." in draft.summary


@pytest.mark.parametrize(
    "nothing", [a_session(), a_session(task=" "), a_session(scratchpad=("\u200b",))]
)
def test_a_session_that_holds_nothing_is_refused(nothing: SessionRecord) -> None:
    with pytest.raises(InvalidInput, match="nothing to tell"):
        draft_of(nothing)


def test_notes_and_a_task_make_an_episode_without_any_turn() -> None:
    notes = ("The import of March failed on row 812.", "Lesson: check the header row first.")

    draft = draft_of(SessionRecord(task="Import the ledger", status="failed", scratchpad=notes))

    assert draft.outcome is Outcome.FAILURE
    assert draft.lessons_learned == ("Lesson: check the header row first.",)
    assert "The import of March failed on row 812." in draft.summary
    assert 5 <= size_of(draft.title) <= 10


@pytest.mark.parametrize(
    ("closing", "outcome"),
    [
        (["Thanks, that works now."], Outcome.SUCCESS),
        (["Perfect!"], Outcome.SUCCESS),
        (["It is still broken."], Outcome.FAILURE),
        (["That does not work."], Outcome.FAILURE),
        (["That didn\u2019t work."], Outcome.FAILURE),
        (["We rolled it back."], Outcome.FAILURE),
        (["No thanks."], Outcome.SUCCESS),
        (["It is not fixed."], Outcome.FAILURE),
        (["It works for now."], Outcome.PARTIAL),
        (["Thanks, but it failed."], Outcome.PARTIAL),
        (["Let us continue tomorrow."], Outcome.PARTIAL),
        (["It failed.", ("assistant", "Try again."), "Thanks, it works now!"], Outcome.SUCCESS),
        (["Thanks!", ("assistant", "You're welcome."), "Oh no, it failed again."], Outcome.FAILURE),
        ([("assistant", "The job failed.")], Outcome.FAILURE),
        (["Did it work?"], Outcome.SUCCESS),
        (["The blue one, please."], Outcome.SUCCESS),
    ],
)
def test_the_last_words_tell_the_outcome(
    closing: list[str | tuple[str, str]], outcome: Outcome
) -> None:
    session = a_session("I want to fix the nightly job.", ("assistant", "Let me look."), *closing)

    assert draft_of(session).outcome is outcome


def test_old_failures_do_not_count_against_a_session() -> None:
    session = a_session("It failed.", *["Let us look at the next file."] * 10)

    assert draft_of(session).outcome is Outcome.SUCCESS


@pytest.mark.parametrize(
    ("known", "outcome"),
    [
        ({"outcome_hint": Outcome.PARTIAL, "status": "failed"}, Outcome.PARTIAL),
        ({"status": "Failed"}, Outcome.FAILURE),
        ({"status": "completed"}, Outcome.SUCCESS),
        ({"status": "in_progress"}, Outcome.PARTIAL),
        ({"status": "unheard of"}, Outcome.SUCCESS),
    ],
)
def test_a_verdict_wins_over_the_status_and_both_over_words(
    known: dict[str, object], outcome: Outcome
) -> None:
    session = a_session("Run the import.", "Thanks, that works!", **known)

    assert draft_of(session).outcome is outcome


def test_tools_and_agents_are_named_in_the_order_they_took_part() -> None:
    def turn(role: str, actor: str, **metadata: object) -> TurnCreate:
        return TurnCreate(
            text="done", occurred_at=MONDAY, actor=actor, role=role, metadata=dict(metadata)
        )

    session = SessionRecord(
        turns=(
            turn("assistant", "Assistant", tool_calls=[{"function": {"name": "search"}}]),
            turn("tool", "psql"),
            turn("tool", "Tool", name="terminal"),
            turn("tool", "Tool"),
            turn("assistant", "Assistant", tools=["PSQL", {"name": "editor"}, 7], agent="coder"),
            turn("assistant", "Assistant", agents=["reviewer", "coder"]),
        ),
        tools=("search", "browser"),
        agents=("planner",),
    )

    draft = draft_of(session)

    assert draft.tools_used == ("search", "psql", "terminal", "editor", "browser")
    assert draft.agents_used == ("coder", "reviewer", "planner")


def test_importance_grows_with_signals_decisions_failure_length_and_cost() -> None:
    plain = a_session("The sky over the harbour is grey.", ("assistant", "Indeed, grey."))
    base = draft_of(plain).importance_score

    stronger = [
        a_session("Remember: the sky over the harbour is grey.", ("assistant", "Indeed, grey.")),
        a_session("We decided the sky over the harbour is grey.", ("assistant", "Indeed, grey.")),
        a_session(*["The sky over the harbour is grey."] * 40),
        SessionRecord(turns=plain.turns, outcome_hint=Outcome.FAILURE),
        SessionRecord(turns=plain.turns, tokens_used=90_000),
    ]

    assert [draft_of(session).importance_score > base for session in stronger] == [True] * 5


def test_importance_stays_within_its_bounds() -> None:
    least = draft_of(a_session("hi"))
    most = draft_of(
        a_session(
            *(f"Remember, we decided always to use option{n} of part{n}." for n in range(400)),
            outcome_hint=Outcome.FAILURE,
            tokens_used=10**12,
        )
    )

    assert 0.21 <= least.importance_score < 0.3
    assert 0.9 < most.importance_score <= 1


def test_lessons_are_whole_sentences_each_once_and_no_questions() -> None:
    session = a_session(
        "What is the lesson here?",
        "It turns out the cache was cold. It turns out the cache was cold.",
        ("assistant", "Next time we should warm it up before the release."),
        ("tool", "lesson learned: not mine"),
        *(f"Lesson learned: number {n} counts." for n in range(9)),
    )

    assert draft_of(session).lessons_learned == (
        "It turns out the cache was cold.",
        "Next time we should warm it up before the release.",
        "Lesson learned: number 0 counts.",
        "Lesson learned: number 1 counts.",
        "Lesson learned: number 2 counts.",
    )


def test_sentences_are_whole_and_code_and_quotes_are_left_out() -> None:
    text = (
        "See e.g. Redis or v1.4. Then stop! J. Doe agrees... yes?\n"
        "> quoted line\n"
        "1. First point\n- second   point\n"
        "```python\nx = 1. Y\n```\n"
        "\u4f60\u597d\u3002\u518d\u89c1\uff01\n\u200b"
    )

    assert list(sentences_of(text)) == [
        "See e.g. Redis or v1.4.",
        "Then stop!",
        "J. Doe agrees... yes?",
        "First point",
        "second point",
        "\u4f60\u597d\u3002",
        "\u518d\u89c1\uff01",
    ]


DRAW = """
import json, sys
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from mnemic.model.transcript import Utterance, read
from mnemic.think import SessionRecord, extract_facts
from mnemic.think.rules import draft_of
turns = [e for e in read(Path(sys.argv[1])) if isinstance(e, Utterance)]
for name, group in groupby(turns, key=lambda u: u.session):
    said = tuple(u.turn for u in group)
    print(json.dumps(asdict(draft_of(SessionRecord(turns=said)))))
    for t in said:
        for f in extract_facts(t.text, actor=t.actor, occurred_at=t.occurred_at):
            print(json.dumps(asdict(f), default=str))
"""


def test_the_bytes_do_not_depend_on_the_hash_seed() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", DRAW, str(EXAMPLE)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    ]

    assert outputs[0] == outputs[1] == outputs[2]
    assert len(outputs[0].splitlines()) > 12
    json.loads(outputs[0].splitlines()[0])


def calls_of(work: Callable[[], object]) -> int:
    count = 0

    def counting(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def long_session(turns: int) -> SessionRecord:
    return a_session(
        *(
            f"Part {n % 97} of the import failed on row {n}. We decided to skip column{n % 13}."
            for n in range(turns)
        )
    )


@pytest.mark.measured
def test_twice_the_turns_are_twice_the_work() -> None:
    small, large = long_session(400), long_session(800)
    draft_of(small)

    first, second = calls_of(lambda: draft_of(small)), calls_of(lambda: draft_of(large))

    assert 1.8 < second / first < 2.2


@pytest.mark.measured
def test_ten_thousand_turns_are_told_as_shortly_as_ten() -> None:
    draft = draft_of(long_session(10_000))

    assert 5 <= size_of(draft.title) <= 10
    assert len(draft.summary) < 400
    assert 3 <= len(draft.key_topics) <= 7


@pytest.mark.parametrize(
    "text",
    [
        "." * 20_000,
        "a." * 10_000,
        "a-" * 10_000,
        "!?" * 10_000,
        "\u3002" * 20_000,
        " " * 10_000 + "x",
        "not " * 5_000,
        "n't" * 6_000,
        "I prefer " * 2_200,
        "\u5bc6" * 20_000,
        "`" * 20_000,
        "(" * 20_000,
        '"' * 19_999,
        "hi " * 6_600,
    ],
)
def test_text_made_to_be_slow_takes_calls_in_proportion_to_its_length(text: str) -> None:
    half = a_session(text[: len(text) // 2] + "x")
    whole = a_session(text + "x")
    draft_of(half)

    first, second = calls_of(lambda: draft_of(half)), calls_of(lambda: draft_of(whole))

    assert second < 2.5 * first + 500


WORDS = st.sampled_from(
    [
        *("We decided to use {braces}", "<b>bold</b>", "thanks", "Lesson learned", "is broken"),
        *(
            "\u5bc6\u94a5\u6cc4\u9732\u4e86\u3002",
            "\U0001f680\U0001f468\u200d\U0001f469",
            "caf\u00e9",
        ),
        *(
            "```",
            "\n",
            ". ",
            "? ",
            "> ",
            "- ",
            "e.g. ",
            "%s",
            "\\",
            "\u05e9\u05dc\u05d5\u05dd",
            "x" * 50,
        ),
    ]
)
TEXTS = st.lists(st.one_of(WORDS, st.text(max_size=6)), min_size=1, max_size=12).map(" ".join)
TURNS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), TEXTS),
    min_size=1,
    max_size=6,
)


@given(TURNS)
def test_every_session_gets_a_sound_draft(said: list[tuple[str, str]]) -> None:
    session = a_session(*said)

    try:
        draft = draft_of(session)
    except InvalidInput:
        return

    assert 5 <= size_of(draft.title) <= 10
    assert draft.title == " ".join(draft.title.split())
    assert draft.summary.strip()
    assert "\n" not in draft.summary
    assert len(draft.key_topics) <= 7
    assert len(draft.user_intents) <= 5
    assert len(draft.lessons_learned) <= 5
    assert 0 <= draft.importance_score <= 1
    assert draft == draft_of(session)
