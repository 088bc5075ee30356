"""Facts from statements: every example of docs/extraction.md, and what is no statement."""

import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.fact import FactCreate
from mnemic.model.trust import Trust
from mnemic.think import extract_facts
from mnemic.think.dates import date_in
from mnemic.think.rulebook import RULES

DOCUMENT = (Path(__file__).parents[2] / "docs" / "extraction.md").read_text(encoding="utf-8")
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
ROWS = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) · (\w+) · ([^|]+) \| ([\d.]+) \|$", DOCUMENT, re.MULTILINE
)
NO_FACT = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \|$",
    DOCUMENT.partition("What is no fact")[2].partition("\n## ")[0],
    re.MULTILINE,
)[2:]


def stated(text: str, *, actor: str = "User") -> list[FactCreate]:
    return extract_facts(text, actor=actor, occurred_at=MONDAY)


def triples(text: str) -> list[tuple[str, str, str]]:
    return [(fact.subject, fact.predicate, fact.object) for fact in stated(text)]


@pytest.mark.parametrize(("rule", "said", "subject", "predicate", "object_", "confidence"), ROWS)
def test_each_documented_example_gives_its_fact(
    rule: str, said: str, subject: str, predicate: str, object_: str, confidence: str
) -> None:
    facts = stated(said)

    assert [(f.subject, f.predicate, f.object) for f in facts] == [(subject, predicate, object_)]
    assert facts[0].confidence == float(confidence)
    assert facts[0].metadata["rule"] == rule


def test_the_document_shows_each_rule_with_its_category_and_confidence() -> None:
    shown = {(rule, float(confidence)) for rule, _, _, _, _, confidence in ROWS}

    assert shown == {(rule.name, rule.confidence) for rule in RULES}
    assert len(ROWS) >= len(RULES)
    sections = re.split(
        r"^### (\w+)$", DOCUMENT.partition("## What is no fact")[0], flags=re.MULTILINE
    )
    for category, section in zip(sections[1::2], sections[2::2], strict=True):
        rows = re.findall(r"^\| ([a-z ]+) \|[^|]+\|[^|]+\| [\d.]+ \|$", section, re.MULTILINE)
        assert set(rows) == {rule.name for rule in RULES if rule.category == category.lower()}


@pytest.mark.parametrize(("why", "said"), NO_FACT)
def test_what_is_no_statement_gives_no_fact(why: str, said: str) -> None:
    assert why
    assert triples(said) == []


def test_there_are_examples_of_what_is_no_fact() -> None:
    assert len(NO_FACT) >= 15


def test_a_fact_keeps_the_sentence_the_time_and_what_it_rests_on() -> None:
    text = "Hi! We decided to use PostgreSQL, because refunds need transactions. Bye."

    (fact,) = stated(text)

    assert fact == FactCreate(
        subject="User",
        predicate="decided",
        object="use PostgreSQL",
        content="We decided to use PostgreSQL, because refunds need transactions.",
        confidence=0.9,
        category="decision",
        valid_from=MONDAY,
        metadata={"rule": "decision", "reason": "refunds need transactions"},
        trust=Trust.INFERRED,
        source="rules",
    )


@pytest.mark.parametrize(
    ("said", "metadata"),
    [
        ("I prefer Python over JavaScript.", {"over": "JavaScript"}),
        ("I prefer tea to coffee.", {"over": "coffee"}),
        ("I prefer to write tests first.", {}),
        ("We use Valkey for the carts.", {"purpose": "the carts"}),
        ("We use Valkey instead of RabbitMQ for mail.", {"over": "RabbitMQ", "purpose": "mail"}),
        ("The report is due on 30 April.", {"date": "2026-04-30"}),
        ("The report is due tomorrow.", {"date": "2026-03-03"}),
        ("The report is due before the audit.", {}),
    ],
)
def test_what_goes_with_an_object_stands_in_the_metadata(
    said: str, metadata: dict[str, str]
) -> None:
    (fact,) = stated(said)

    assert {key: value for key, value in fact.metadata.items() if key != "rule"} == metadata


def test_the_first_person_is_whoever_speaks() -> None:
    (fact,) = stated("I prefer tabs.", actor="Reviewer")

    assert fact.subject == "Reviewer"


def test_one_text_gives_several_facts_in_order_and_each_once() -> None:
    text = (
        "My name is Ada and I live in Lisbon. I prefer tea; we use Valkey for carts.\n"
        "- Deploys are frozen on Fridays.\n"
        "- deploys are frozen on fridays\n"
        "```\nI prefer code\n```\n"
        "Lesson learned: we must never skip the rehearsal."
    )

    assert triples(text) == [
        ("User", "name", "Ada"),
        ("User", "lives_in", "Lisbon"),
        ("User", "prefers", "tea"),
        ("User", "uses", "Valkey"),
        ("Deploys", "frozen_on", "Fridays"),
        ("User", "lesson", "we must never skip the rehearsal"),
        ("User", "must_not", "skip the rehearsal"),
    ]


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        ("I prefer \u201cNordic\u201d themes.", ("User", "prefers", "\u201cNordic\u201d themes")),
        ("I prefer {braces} and <b>tags</b>", ("User", "prefers", "{braces} and <b>tags</b>")),
        ("I\u2019m based in M\u00fcnchen.", ("User", "lives_in", "M\u00fcnchen")),
        ("We use Valkey, not Redis.", ("User", "uses", "Valkey")),
        (
            "My favourite drink is \u62b9\u8336 \U0001f375.",
            ("User", "favourite_drink", "\u62b9\u8336 \U0001f375"),
        ),
        ("Good tests require patience.", ("Good tests", "requires", "patience")),
    ],
)
def test_words_survive_as_they_are_written(said: str, triple: tuple[str, str, str]) -> None:
    assert triples(said) == [triple]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("30 April", date(2026, 4, 30)),
        ("1 March", date(2027, 3, 1)),
        ("2 March", date(2026, 3, 2)),
        ("29 February", date(2028, 2, 29)),
        ("2025-12-24", date(2025, 12, 24)),
        ("today at 10:00", date(2026, 3, 2)),
        ("tomorrow", date(2026, 3, 3)),
        ("Friday", date(2026, 3, 6)),
        ("monday", date(2026, 3, 2)),
        ("next Monday", date(2026, 3, 9)),
        ("in two weeks", date(2026, 3, 16)),
        ("in 10 days", date(2026, 3, 12)),
        ("April", None),
        ("soon", None),
    ],
)
def test_a_day_is_seen_from_the_day_it_was_said(text: str, day: date | None) -> None:
    assert date_in(text, MONDAY) == day


PIECES = st.sampled_from(
    [
        *("I prefer ", "we ", "use ", "my name is ", "must not ", "decided to ", " over ", " for "),
        *(
            "Deploys ",
            "are frozen on ",
            "Lesson learned: ",
            ", because ",
            "\n",
            "; ",
            "?",
            '"',
            "> ",
        ),
        *("is due on ", "30 February", "in 999 weeks", "tomorrow", "```", "\u3002", "\u2019", "-"),
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=25).map("".join))
def test_every_fact_is_sound_whatever_the_text(text: str) -> None:
    facts = stated(text)

    for fact in facts:
        assert fact.subject.strip()
        assert re.fullmatch(r"\w+", fact.predicate)
        assert fact.object.strip()
        assert fact.content
        assert 0 < fact.confidence <= 1
    assert facts == stated(text)


def test_a_long_text_gives_a_bounded_number_of_facts() -> None:
    text = "\n".join(f"I like number{place}." for place in range(1_000))

    facts = stated(text)

    assert [fact.object for fact in facts] == [f"number{place}" for place in range(100)]


def test_a_sentence_beyond_the_bound_is_passed_over() -> None:
    assert stated("I prefer " + "very " * 200 + "long names.") == []
    assert len(stated("I prefer " + "very " * 50 + "long names.")) == 1
