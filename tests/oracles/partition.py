"""*Paging is a partition*: every row stands on one page, under ties and writes, and paging ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

__all__ = ["assert_partition"]


def assert_partition(
    pages: Iterable[Sequence[Hashable]], expected: Iterable[Hashable], *, size_max: int
) -> None:
    """No page is larger than `size_max`; nothing expected is missing, and nothing stands twice."""
    held = [list(page) for page in pages]
    assert all(len(page) <= size_max for page in held)
    counted = Counter(one for page in held for one in page)
    assert [one for one, times in counted.items() if times > 1] == []
    assert set(expected) - counted.keys() == set()
