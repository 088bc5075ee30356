"""Receipts, ids and trust: small values whose every field counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.identity import uuid7
from mnemic.model.recall import kinds_of
from mnemic.model.receipt import Durability, Receipt, VectorState
from mnemic.model.trust import Trust, derived_trust

ONE, OTHER = UUID(int=1), UUID(int=2)
AT = datetime(2026, 3, 2, 9, 0, 0, 123_000, tzinfo=UTC)
KEPT = Receipt(
    id=ONE,
    kind="fact",
    version=3,
    durability=Durability.VALKEY,
    vector=VectorState.PENDING,
    created=False,
    also=(OTHER,),
    refused=True,
    key="answer",
    notes=("cut",),
)


def test_a_receipt_tells_each_field_in_json() -> None:
    assert KEPT.to_json() == {
        "id": str(ONE),
        "kind": "fact",
        "version": 3,
        "durability": "valkey",
        "vector": "pending",
        "created": False,
        "also": [str(OTHER)],
        "refused": True,
        "key": "answer",
        "notes": ["cut"],
    }


def test_a_receipt_reads_back_equal() -> None:
    plain = Receipt(
        id=OTHER,
        kind="episode",
        version=1,
        durability=Durability.COMMITTED,
        vector=VectorState.READY,
    )

    assert [Receipt.from_json(one.to_json()) for one in (KEPT, plain)] == [KEPT, plain]


def test_a_receipt_of_before_there_were_keys_and_notes_can_be_read() -> None:
    older = KEPT.to_json()
    del older["key"], older["notes"]

    read = Receipt.from_json(older)

    assert (read.key, read.notes) == (None, ())


def test_an_id_is_of_version_seven_and_begins_with_its_millisecond() -> None:
    made = uuid7(AT, 0)

    assert (made.version, made.variant) == (7, RFC_4122)
    assert made.int >> 80 == int(AT.timestamp() * 1_000)
    assert made.int & ((1 << 62) - 1) == 0
    assert (made.int >> 64) & 0xFFF == 0


@given(st.integers(min_value=0, max_value=2**74 - 1))
def test_every_random_bit_is_kept_and_none_spoils_the_version(noise: int) -> None:
    made = uuid7(AT, noise)

    assert ((made.int >> 64) & 0xFFF) << 62 | made.int & ((1 << 62) - 1) == noise
    assert (made.version, made.variant) == (7, RFC_4122)
    assert uuid7(AT, noise | 0b1111 << 74) == made


@given(st.integers(min_value=1, max_value=10**9))
def test_a_later_id_is_a_greater_one(milliseconds: int) -> None:
    later = AT + timedelta(milliseconds=milliseconds)

    assert uuid7(later, 0).int > uuid7(AT, 2**74 - 1).int


def test_a_time_before_1970_still_gives_an_id() -> None:
    assert uuid7(datetime(1960, 1, 1, tzinfo=UTC), 5).version == 7


@pytest.mark.parametrize(
    ("sources", "trust"),
    [
        ([Trust.OPERATOR, Trust.EXTERNAL, Trust.USER], Trust.EXTERNAL),
        ([Trust.USER], Trust.USER),
        ([], Trust.INFERRED),
    ],
)
def test_what_is_derived_is_as_trusted_as_its_worst_source(
    sources: list[Trust], trust: Trust
) -> None:
    assert derived_trust(iter(sources)) is trust


def test_the_kinds_of_the_types_come_once_and_in_a_fixed_order() -> None:
    assert kinds_of(("procedural", "episodic", "episodic")) == ("turn", "episode", "procedure")
    assert kinds_of(("semantic",)) == ("fact",)
    assert kinds_of(("working",)) == ()
