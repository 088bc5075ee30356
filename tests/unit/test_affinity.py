"""What facts say of tools."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from held_memories import a_held_fact

from mnemic.model.affinity import affinities

FACT = a_held_fact(object="grep", category="tool_affinity", confidence=0.8)


def test_a_tool_that_suits_is_positive_and_one_to_avoid_negative() -> None:
    facts = [
        FACT,
        replace(FACT, object="curl", category="tool_avoidance", confidence=0.9),
        replace(FACT, object="fd", category="general", predicate="prefers_tool", confidence=0.3),
        replace(FACT, object="wget", category="general", predicate="avoids_tool", confidence=0.2),
    ]

    assert affinities(facts) == {"curl": -0.9, "grep": 0.8, "fd": 0.3, "wget": -0.2}
    assert list(affinities(reversed(facts))) == ["curl", "grep", "fd", "wget"]


def test_the_predicate_tells_more_than_the_category() -> None:
    assert affinities([replace(FACT, predicate="avoids_tool")]) == {"grep": -0.8}
    assert affinities([replace(FACT, predicate="prefers_tool", category="tool_avoidance")]) == {
        "grep": 0.8
    }


def test_of_several_facts_about_a_tool_the_surest_counts_however_it_is_spelt() -> None:
    weak = replace(FACT, object="GREP", category="tool_avoidance", confidence=0.7, id=UUID(int=2))

    assert affinities([weak, FACT]) == {"grep": 0.8}
    assert affinities([FACT, replace(weak, confidence=0.9)]) == {"GREP": -0.9}


def test_of_equally_sure_facts_the_one_against_a_tool_counts() -> None:
    against = replace(FACT, category="tool_avoidance", id=UUID(int=2))

    assert affinities([FACT, against]) == affinities([against, FACT]) == {"grep": -0.8}


def test_of_equal_facts_the_lowest_id_gives_the_name() -> None:
    other = replace(FACT, object="Grep", id=UUID(int=2))

    assert affinities([other, FACT]) == {"grep": 0.8}


def test_tools_that_are_as_sure_stand_by_their_names() -> None:
    assert list(affinities([replace(FACT, object=name) for name in "cab"])) == ["a", "b", "c"]
