"""Names become keys injectively, values keep their types, patterns answer in bounded time."""

from __future__ import annotations

import math
import re
import time
from datetime import timedelta
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mnemic.errors import InvalidInput
from mnemic.model.normalise import is_blank
from mnemic.model.scope import Scope
from mnemic.model.working import TaskState
from mnemic.store.working.jsonb import body_of_jsonb, jsonb_of_body
from mnemic.store.working.keys import (
    TASK,
    checked_key,
    field_digest,
    field_of_text,
    instance_key,
    key_of,
    scope_keys,
    text_of_field,
)
from mnemic.store.working.pattern import key_matcher
from mnemic.store.working.stamps import Stamps, stamp_at

# Letters that keys, patterns, separators and escapes are made of, NUL among them.
nasty = st.text(alphabet="a*?[]\\\x00{}:|/ -!^é\U0001f680k", min_size=1, max_size=12)
any_text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
keys = st.one_of(nasty, any_text)
names = keys.filter(lambda name: "\x00" not in name and not is_blank(name))


@given(keys, keys)
@example("\\0", "\x00")
@example("\\\x00", "\\\\0")
@example("t", "k")
def test_two_keys_never_share_a_field_a_text_or_a_digest(one: str, other: str) -> None:
    fields = [checked_key(key, bytes_max=10_240) for key in (one, other)]
    texts = [text_of_field(field) for field in fields]

    assert [key_of(field) for field in fields] == [one, other]
    assert [field_of_text(text) for text in texts] == fields
    assert all("\x00" not in text for text in texts)
    assert TASK not in fields
    same = one == other
    assert (fields[0] == fields[1]) == same
    assert (texts[0] == texts[1]) == same
    assert (field_digest(fields[0]) == field_digest(fields[1])) == same


def test_the_task_state_is_found_again_and_is_no_key() -> None:
    assert field_of_text(text_of_field(TASK)) == TASK
    assert text_of_field(TASK) == ""


@st.composite
def scopes(draw: st.DrawFn) -> Scope:
    make = draw(st.sampled_from([Scope.user, Scope.organisation]))
    scope = make(draw(names))
    for narrow in ("project", "agent_type", "agent", "session"):
        if draw(st.booleans()):
            scope = getattr(scope, narrow)(draw(names))
    return scope


@given(names, scopes(), names, scopes())
def test_two_scopes_never_share_a_key_in_valkey(
    namespace: str, one: Scope, other_namespace: str, other: Scope
) -> None:
    first, second = scope_keys(namespace, one), scope_keys(other_namespace, other)

    same = (namespace, one) == (other_namespace, other)
    assert (first == second) == same
    assert bool({first.values, first.heads, first.notes} & {second.values}) == same
    assert re.fullmatch(r"mnemic:[0-9a-f]{16}:\{[0-9a-f]{32}\}:[0-9a-f]{32}:v", first.values)
    assert instance_key(namespace) not in {first.values, first.heads, first.notes}


def test_everything_of_a_tenant_lies_in_one_slot() -> None:
    scope = Scope.user("u")

    tags = {
        re.findall(r"\{(.*)\}", key)[0]
        for one in (scope, scope.session("s"), scope.project("p"))
        for key in (scope_keys("n", one).values, scope_keys("n", one).heads)
    }

    assert tags == {scope.tenant.id.hex}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('a\\"e1.+-'), inner),
    max_leaves=12,
)


@given(json_values)
@example(1e17)
@example(["1e17", 1e-300, '\\"1e5', {"1E5": -0.0}])
def test_text_for_jsonb_is_the_same_value_without_an_exponent(value: Any) -> None:
    text = jsonb_of_body(orjson.dumps(value))

    read = orjson.loads(text)
    assert orjson.dumps(read) == orjson.dumps(value)
    assert body_of_jsonb(text) == orjson.dumps(value)
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert "e" not in re.sub("true|false", "", outside).lower()


def as_regex(pattern: str) -> str:
    """The documented meaning, written once more: sets are left to the examples."""
    parts = []
    place = 0
    while place < len(pattern):
        mark = pattern[place]
        if mark == "\\" and place + 1 < len(pattern):
            place += 1
            parts.append(re.escape(pattern[place]))
        else:
            parts.append({"*": ".*", "?": "."}.get(mark, re.escape(mark)))
        place += 1
    return "".join(parts)


@settings(max_examples=400)
@given(
    st.text(alphabet="ab*?\\\n", max_size=8),
    st.text(alphabet="ab*\\\n", min_size=1, max_size=8),
)
def test_a_pattern_means_what_is_documented(pattern: str, key: str) -> None:
    expected = re.fullmatch(as_regex(pattern), key, re.DOTALL) is not None

    assert key_matcher(pattern)(key) == expected


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("[abc]", "b", "d"),
        ("[a-c]x", "bx", "dx"),
        ("[c-a]x", "bx", "dx"),
        ("[!a-c]", "d", "a"),
        ("[^a]", "b", "a"),
        ("[]]", "]", "["),
        ("[!]]", "[", "]"),
        ("[]-a]", "^", "b"),
        ("[a\\]b]", "]", "\\"),
        ("[a-]", "-", "b"),
        ("[\\a-z]", "a", "b"),
        ("[*]", "*", "a"),
        ("[", "[", "a"),
        ("[a", "[a", "a"),
        ("[!", "[!", "a"),
        ("a\\", "a\\", "a"),
        ("*é*", "caf\u00e9s", "cafes"),
        ("k\x00*", "k\x00z", "k"),
    ],
)
def test_sets_and_escapes(pattern: str, matching: str, other: str) -> None:
    matches = key_matcher(pattern)

    assert matches(matching)
    assert not matches(other)


@given(keys)
def test_a_key_behind_backslashes_matches_itself_alone(key: str) -> None:
    literal = "".join(f"\\{character}" for character in key)
    matches = key_matcher(literal)

    assert matches(key)
    assert not matches(key + "a")
    assert key_matcher("*" + literal)("x" + key)


def test_the_worst_pattern_takes_time_that_grows_with_the_key_alone() -> None:
    matches = key_matcher("*a?" * 300 + "b")

    def taken(length: int) -> float:
        key = "a" * length
        times = []
        for _ in range(3):
            began = time.perf_counter()
            assert not matches(key)
            times.append(time.perf_counter() - began)
        return min(times)

    assert taken(10_000) < 40 * taken(1_000) + 0.01


@pytest.mark.parametrize("pattern", [None, 1, b"*", "x" * 25_001, "*a" * 501])
def test_a_pattern_beyond_its_bounds_is_refused(pattern: Any) -> None:
    with pytest.raises(InvalidInput, match="pattern: "):
        key_matcher(pattern)


def test_stamps_only_grow_and_outgrow_what_they_have_seen() -> None:
    stamps, ahead = Stamps(), Stamps()
    now = 1_800_000_000_000

    given_stamps = [stamps.tick(now).stamp for _ in range(2_000)]
    backwards = stamps.tick(now - 5_000).stamp
    theirs = ahead.tick(now + 60_000).stamp
    stamps.observe(theirs, now)

    assert given_stamps == sorted(set(given_stamps))
    assert backwards > given_stamps[-1]
    assert stamps.tick(now).stamp > theirs
    assert stamp_at(now) <= given_stamps[0] < stamp_at(now + 1)


def test_a_version_of_a_broken_clock_is_not_followed() -> None:
    stamps, broken = Stamps(), Stamps()
    now = 1_800_000_000_000
    far = broken.tick(now + int(timedelta(days=400).total_seconds()) * 1_000).stamp

    stamps.observe(far, now)

    assert stamps.tick(now).stamp < stamp_at(now + 1)


def test_two_processes_never_give_the_same_id() -> None:
    one, other = Stamps(), Stamps()

    ids = {stamps.tick(1_800_000_000_000).id for stamps in (one, other) for _ in range(100)}

    assert len(ids) == 200
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"current_step": True}, "current_step"),
        ({"current_step": ""}, "current_step"),
        ({"current_step": "a\x00"}, "current_step"),
        ({"current_step": 2**63}, "current_step"),
        ({"current_step": 1.5}, "current_step"),
        ({"status": ""}, "status"),
        ({"status": None}, "status"),
        ({"progress": 1.01}, "progress"),
        ({"progress": -0.01}, "progress"),
        ({"progress": math.nan}, "progress"),
        ({"progress": True}, "progress"),
        ({"progress": "half"}, "progress"),
        ({"description": "\ud800"}, "description"),
        ({"metadata": [1]}, "metadata"),
        ({"metadata": {"a": math.inf}}, "metadata.a"),
    ],
)
def test_a_task_state_that_cannot_be_held_names_the_field(
    values: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        TaskState(**values)

    assert raised.value.field == field


@given(
    st.none() | st.integers(-(2**62), 2**62) | keys.filter(lambda text: "\x00" not in text),
    st.floats(0, 1),
    st.dictionaries(st.text("abc"), json_values, max_size=3),
)
def test_a_task_state_is_equal_after_json(step: Any, progress: float, metadata: Any) -> None:
    try:
        state = TaskState(step, "running", progress, "", metadata)
    except InvalidInput:
        return

    assert TaskState.from_json(orjson.loads(orjson.dumps(state.to_json()))) == state
