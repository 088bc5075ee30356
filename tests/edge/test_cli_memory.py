"""Remember, recall, context, forget and sessions through the installed command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

DEPLOYS = "Deploys are frozen on Fridays"


def test_what_is_remembered_is_recalled_with_its_reasons(mnemic: Any) -> None:
    kept = mnemic("remember", DEPLOYS, "--tag", "ops", "--importance", "0.9", "--json")

    found = mnemic("recall", "When are deploys frozen?", "--json")

    (hit,) = found.document["hits"]
    assert (kept.code, found.code) == (0, 0)
    assert hit["id"] == kept.document["id"]
    assert (hit["kind"], hit["text"]) == ("fact", DEPLOYS)
    assert hit["reasons"]["cosine"] > 0.5
    assert hit["words_place"] == hit["near_place"] == 1
    assert found.document["scope"] == {"person": mnemic.environment["MEM_USER"]}
    assert found.err == ""


def test_a_piped_recall_is_a_line_for_each_hit(mnemic: Any) -> None:
    kept = mnemic("remember", DEPLOYS, "--json").document

    found = mnemic("recall", "When are deploys frozen?", "--why")

    first, why, verdict, *_ = found.out.splitlines()
    score, when, kind, text = first.split("\t")
    assert (float(score) > 0.5, len(when), kind, text) == (True, 16, "fact", DEPLOYS)
    assert why.startswith(f"1. {kept['id']}  ")
    assert "base" in why
    assert verdict.startswith("confidence ")


def test_an_idempotency_key_writes_once_and_refuses_another_text(mnemic: Any) -> None:
    first = mnemic("remember", DEPLOYS, "--key", "k1", "--json")
    again = mnemic("remember", DEPLOYS, "--key", "k1", "--json")

    other = mnemic("remember", "Deploys are frozen on Mondays", "--key", "k1")

    assert again.document == first.document
    assert other.code == 3
    assert other.err.startswith("Error: The idempotency key was used")


def test_an_episode_and_a_procedure_are_kept_as_such(mnemic: Any) -> None:
    steps = "Deploy the service\n1. Run the tests\n2. Tag the release"

    episode = mnemic("remember", "The release failed", "--type", "episodic", "--json")
    procedure = mnemic("remember", "-", "--type", "procedural", "--json", stdin=steps)
    refused = mnemic("remember", "no steps", "--type", "procedural")

    assert episode.document["kind"] == "episode"
    assert procedure.document["kind"] == "procedure"
    assert (refused.code, refused.out) == (2, "")
    assert "1. Run the tests" in refused.err


def test_scopes_see_what_is_wider_and_not_what_is_narrower(mnemic: Any) -> None:
    mnemic("remember", DEPLOYS, "--project", "ledger")

    inside = mnemic("recall", "When are deploys frozen?", "--project", "ledger", "--agent", "a")
    outside = mnemic("recall", "When are deploys frozen?")
    elsewhere = mnemic("recall", "When are deploys frozen?", "--org", "ledger")

    assert DEPLOYS in inside.out
    for other in (outside, elsewhere):
        assert other.code == 0
        assert "Nothing found in" in other.out
        assert "nothing is remembered in this scope yet" in other.out
        assert DEPLOYS not in other.out


def test_types_limits_and_floors_narrow_a_recall(mnemic: Any) -> None:
    mnemic("remember", DEPLOYS)
    mnemic("remember", "Deploys were frozen after the release failed", "--type", "episodic")
    question = "When are deploys frozen?"

    episodes = mnemic("recall", question, "--type", "episodic", "--json").document
    one = mnemic("recall", question, "--limit", "1", "--json").document
    capped = mnemic("recall", question, "--limit", "5000", "--json").document
    none = mnemic("recall", "Which cheese goes with pears?")
    nothing = mnemic("recall", "Which cheese goes with pears?", "--json").document

    assert {hit["kind"] for hit in episodes["hits"]} == {"episode"}
    assert len(one["hits"]) == 1
    assert "limit cut to 100, the largest" in capped["notes"]
    assert none.out.startswith("Nothing found in")
    assert "Note: nothing relevant: 2 candidates lie below 0.43" in none.out
    assert (nothing["hits"], nothing["low_confidence"], nothing["degraded"]) == ([], True, [])
    assert nothing["notes"] == ["nothing relevant: 2 candidates lie below 0.43"]


def test_a_filter_narrows_a_recall_and_what_it_keeps_out_says_why(mnemic: Any) -> None:
    kept = mnemic("remember", DEPLOYS, "--tag", "ops", "--json").document
    question, narrowed = "When are deploys frozen?", '{"tags": {"ne": "ops"}}'

    found = mnemic("recall", question, "--filter", '{"tags": "ops"}', "--explain")
    none = mnemic("recall", question, "--filter", narrowed, "--json").document
    why = mnemic("why-not", question, kept["id"], "--filter", narrowed, "--json").document
    told = mnemic("why-not", question, kept["id"])
    twice = mnemic("recall", question, "--filter", '{"tags": "a", "tags": "b"}')
    unknown = mnemic("why-not", question, str(uuid4()))

    assert "fact: filtered, 1 rows" in found.out
    assert f"fact near 1. {kept['id']}" in found.out
    assert none["hits"] == []
    assert none["notes"] == ["nothing that is remembered here passes the filter"]
    assert (why["stage"], why["kind"], why["id"]) == ("filter", "fact", kept["id"])
    assert told.out.startswith("returned: it is number 1.\nIts places: 1 in near")
    assert (twice.code, unknown.code) == (2, 3)
    assert "names a key twice" in twice.err


def test_a_context_is_the_section_alone_within_its_budget(mnemic: Any) -> None:
    mnemic("remember", DEPLOYS)

    section = mnemic("context", "When are deploys frozen?", "--budget", "60")
    told = mnemic("context", "When are deploys frozen?", "--budget", "60", "--json")
    tiny = mnemic("context", "When are deploys frozen?", "--budget", "1")

    assert section.out.startswith("## ")
    assert f'- "{DEPLOYS}"' in section.out
    assert section.err == ""
    assert told.document["text"] == section.out.removesuffix("\n")
    assert 0 < told.document["tokens"] <= told.document["budget"] == 60
    assert (tiny.code, tiny.out) == (0, "")
    assert tiny.err == "Empty: nothing fits the budget.\n"


def test_forgetting_is_exact_all_or_nothing_and_stays_in_its_scope(mnemic: Any) -> None:
    kept = mnemic("remember", DEPLOYS, "--json").document["id"]

    unknown = mnemic("forget", kept, str(uuid4()), "--yes")
    narrower = mnemic("forget", kept, "--yes", "--project", "ledger")
    stranger = mnemic("forget", kept, "--yes", "--json", "--user", "stranger")
    gone = mnemic("forget", kept, "--yes", "--reason", "outdated", "--json")
    again = mnemic("forget", kept, "--yes")

    assert (unknown.code, narrower.code, stranger.code, again.code) == (3, 3, 3, 3)
    assert stranger.document["error"]["code"] == "not_found"
    assert "wider" in narrower.err
    assert gone.document == {"counts": {"fact": 1}, "total": 1, "reworded": 0}


def test_a_session_rests_goes_on_and_ends_in_one_episode(
    mnemic: Any, ndjson: Callable[..., Path]
) -> None:
    said = {"type": "turn", "session": "s1", "actor": "User", "at": "2026-03-02T09:00:00Z"}
    mnemic("ingest", str(ndjson({**said, "text": "We chose PostgreSQL"})), "--keep-open")

    paused = mnemic("session", "pause", "s1", "--json")
    resumed = mnemic("session", "resume", "s1")
    ended = mnemic("session", "end", "s1", "--outcome", "success", "--json")
    again = mnemic("session", "end", "s1", "--json")
    late = mnemic("session", "pause", "s1")
    unknown = mnemic("session", "end", "nobody", "--json")

    assert paused.document["state"] == "paused"
    assert resumed.out == "s1: active, 1 turns\n"
    assert UUID(ended.document["episode"]["id"])
    assert ended.document["episode"]["created"] is True
    assert again.document["episode"] == ended.document["episode"] | {
        "created": False,
        "vector": "none",
    }
    assert late.code == 3
    assert (unknown.code, unknown.document["error"]["code"]) == (3, "not_found")


def test_what_became_of_a_session_is_told_in_words(
    mnemic: Any, ndjson: Callable[..., Path]
) -> None:
    said = {"type": "turn", "session": "s1", "actor": "User", "at": "2026-03-02T09:00:00Z"}
    mnemic("ingest", str(ndjson({**said, "text": "We chose PostgreSQL"})), "--keep-open")

    ended = mnemic("session", "end", "s1")
    again = mnemic("session", "end", "s1")

    episode = again.out.split()[4]
    assert ended.out.startswith(f"Ended: episode {episode} in user person-")
    assert again.out.startswith("Had ended already: episode ")


def test_what_cannot_be_held_is_refused_by_name(mnemic: Any) -> None:
    lone = mnemic("remember", "lone \udcff byte")
    lone_json = mnemic("recall", "lone \udcff byte", "--json")
    empty = mnemic("remember", "")
    blank = mnemic("recall", " \u200b ")
    long = mnemic("remember", "-", stdin="x" * 200_000)
    null = mnemic("remember", "-", stdin="a\x00b")
    latin = mnemic("remember", "-", stdin="caf\u00e9".encode("latin-1"))
    importance = mnemic("remember", "x", "--importance", "nan")
    floor = mnemic("recall", "x", "--floor", "-1")

    for refused, word in (
        (lone, "lone surrogate"),
        (empty, "must not be blank"),
        (blank, "must not be blank"),
        (long, "200000 characters long; the most is 100000"),
        (null, "NUL"),
        (latin, "byte 4 of the standard input is not UTF-8"),
        (importance, "importance: must be a number from 0 to 1"),
        (floor, "floor: must be a number from 0 to 1"),
    ):
        assert (refused.code, refused.out) == (2, ""), refused
        assert word in refused.err
    assert lone_json.document["error"]["field"] == "query"


def test_a_long_text_comes_in_by_standard_input_and_back_unchanged(mnemic: Any) -> None:
    text = "Zeile mit Umlaut: grün\n" + "Wort " * 19_000

    kept = mnemic("remember", "-", "--json", stdin=f"{text}\n")
    found = mnemic("recall", "Welche Zeile ist grün?", "--floor", "0", "--json")

    assert kept.code == 0
    assert found.document["hits"][0]["text"] == text


def test_a_memory_cannot_steer_the_terminal(mnemic: Any) -> None:
    mnemic("remember", "-", stdin="Deploys are \x1b[31mfrozen\x1b[0m on \u202eFridays")

    shown = mnemic("recall", "When are deploys frozen?")

    assert "\x1b" not in shown.out
    assert "\\x1b[31mfrozen" in shown.out
    assert "\\u202e" in shown.out


def test_a_user_without_a_name_is_told_where_it_came_from(mnemic: Any) -> None:
    ended = mnemic("recall", "anything", MEM_USER="")

    assert ended.code == 2
    assert ended.err.startswith("Error: user: must not be empty")
    assert "unset MEM_USER" in ended.err


def test_an_id_of_a_narrower_scope_is_unknown_with_a_hint(mnemic: Any) -> None:
    kept = mnemic("remember", "Deploys are frozen", "--project", "p", "--json").document["id"]

    ended = mnemic("forget", kept, "--yes")

    assert ended.code == 3
    assert ended.err == (
        f"Error: No memory {kept} in this scope; for a narrower one add --project, say.\n"
    )


def test_a_server_that_is_away_is_told_with_what_to_do(mnemic: Any) -> None:
    away = "postgresql://mnemic_app:s3cret@127.0.0.1:1/mnemic"

    ended = mnemic("recall", "anything", MEM_DATABASE_URL=away)
    owner = mnemic("db", "current", MEM_DATABASE_OWNER_URL=away)

    assert (ended.code, owner.code) == (5, 5)
    assert "Try again; `mnemic doctor` tells which server is away." in ended.err
    assert "127.0.0.1" in owner.err
    assert "s3cret" not in ended.err + owner.err
