"""What the checks are asked of, and how they say what they found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mnemic.model.scope import Scope
from mnemic.settings import WorkingSettings
from mnemic.store.working.opening import WorkingPlaces
from mnemic.testing.builders import a_scope
from mnemic.testing.claims import equal, no, refused, yes
from mnemic.testing.clock import TickingClock
from mnemic.tier.working import WorkingMemory

__all__ = [
    "BYTES_MAX",
    "CHECKPOINTS_MAX",
    "KEYS_MAX",
    "NOTES_MAX",
    "TTL",
    "VALUES",
    "WRITERS",
    "WorkingSubject",
    "contract_settings",
    "equal",
    "no",
    "refused",
    "standing_clock",
    "typed",
    "yes",
]

KEYS_MAX = 12
NOTES_MAX = 6
BYTES_MAX = 20_000
CHECKPOINTS_MAX = 3
TTL = timedelta(hours=1)
WRITERS = 12

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**63 - 1, -(2**63) + 1),
    *(0.0, 1.0, 0.1, 1e17, 1e300, 5e-324, -1.5e-7),
    *("", "text", '\\u0041 \\ "', "1e5", "\u2028\U0001f680"),
    *([], {}, [None, [[]], {}], {"": {"b": [1.0, 1]}}, {"z": 1, "a": 2.0}, [1, 1.0, True, "1"]),
)


def contract_settings(**given: Any) -> WorkingSettings:
    """Limits that are met soon."""
    values: dict[str, Any] = {
        "ttl": TTL,
        "keys_max": KEYS_MAX,
        "bytes_max": BYTES_MAX,
        "value_bytes_max": BYTES_MAX,
        "scratchpad_entries_max": NOTES_MAX,
        "checkpoints_max": CHECKPOINTS_MAX,
        "on_outage": "refuse",
        "timeout_seconds": 5,  # a busy machine is no outage
        "connect_timeout_seconds": 5,
    }
    return WorkingSettings(**{**values, **given})


def standing_clock() -> TickingClock:
    """A clock that stands until it is advanced."""
    return TickingClock(step=timedelta(0))


@dataclass(frozen=True, slots=True)
class WorkingSubject:
    """What is asked: an opened place, and the clock that it was opened with."""

    places: WorkingPlaces
    clock: TickingClock

    def memory(self, scope: Scope | None = None) -> WorkingMemory:
        """The working memory of a scope; of a new one unless it is named."""
        return WorkingMemory(self.places, scope or a_scope().session("s"))

    def pass_time(self, seconds: float) -> None:
        """So much later."""
        self.clock.advance(timedelta(seconds=seconds))


def typed(value: object) -> object:
    """The value with its types, so that 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {key: typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [typed(inner) for inner in value]
    return type(value).__name__, value
