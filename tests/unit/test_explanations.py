"""What an explanation tells of one memory."""

from __future__ import annotations

from uuid import UUID

from mnemic.model.explanation import Arm, ArmHit, Explanation, RecallStage, WhyNot

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))


def test_a_memory_has_a_place_in_each_arm_that_found_it_and_in_no_other() -> None:
    near = Arm(kind="turn", name="near", hits=(_hit(ONE, 1), _hit(TWO, 2)))
    words = Arm(kind="turn", name="words", hits=(_hit(TWO, 1),))
    told = Explanation(searches=(), arms=(near, words))

    assert told.places(ONE) == {"near": 1}
    assert told.places(TWO) == {"near": 2, "words": 1}
    assert told.places(THREE) == {}


def test_only_what_came_back_is_told_as_returned() -> None:
    for stage in RecallStage:
        why = WhyNot(id=ONE, kind="turn", stage=stage, detail="")
        assert why.returned is (stage is RecallStage.RETURNED)


def _hit(identity: UUID, place: int) -> ArmHit:
    return ArmHit(id=identity, place=place, value=0.5)
