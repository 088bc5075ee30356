from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.embedding import recentred


def test_what_lies_above_the_median_keeps_its_order_and_the_rest_is_nothing() -> None:
    found = recentred([0.7, 0.8, 0.9, 0.7, 0.6])

    assert found == pytest.approx([0.0, 1 / 3, 2 / 3, 0.0, 0.0])


def test_one_alone_and_none_tell_nothing() -> None:
    assert recentred([]) == []
    assert recentred([0.9]) == recentred([0.0]) == [0.0]
    assert recentred([1.0, 1.0]) == [0.0, 0.0]


@given(st.lists(st.floats(-1.0, 1.0), max_size=30))
def test_every_value_lies_between_zero_and_one(cosines: list[float]) -> None:
    assert all(0.0 <= one <= 1.0 for one in recentred(cosines))
