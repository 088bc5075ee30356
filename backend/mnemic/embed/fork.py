"""What a forked child must not inherit: locks that nobody will release, calls that never end."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final
from weakref import WeakMethod

__all__ = ["renew_in_children"]

_renewals: Final[list[WeakMethod[Callable[[], None]]]] = []


def renew_in_children(renew: Callable[[], None]) -> None:
    """The bound method `renew` runs in each forked child, while its object lives."""
    _renewals[:] = [known for known in _renewals if known() is not None]
    _renewals.append(WeakMethod(renew))


def _renew_all() -> None:
    for known in _renewals:
        renew = known()
        if renew is not None:
            renew()


os.register_at_fork(after_in_child=_renew_all)
