"""Names for turns and facts that carry none.

A name must be the same in a second reading, after lines were appended, and after a bad line
elsewhere in the file was repaired, or the second reading would add what the first has added. So
it is made of what the entry says, never of its place in the file.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from mnemic.model.normalise import digest

__all__ = ["TurnNames", "content_name"]

_NAME_HEX = 40


def content_name(*parts: str) -> str:
    """A name made of the parts alone: `sha256:` and 160 bits."""
    return f"sha256:{digest(*parts).hex()[:_NAME_HEX]}"


class TurnNames:
    """Names the turns of one session.

    The same words by the same actor at the same instant are told apart by counting them, so
    memory grows with the longest stretch of turns that share an instant, and no further.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._instant: datetime | None = None
        self._seen: Counter[str] = Counter()

    def name(self, *, instant: datetime, actor: str, text: str) -> str:
        """The name of the next turn; `instant` is the time that the file itself gives."""
        if instant != self._instant:
            self._instant = instant
            self._seen.clear()
        said = content_name(self._session, instant.isoformat(), actor, text)
        self._seen[said] += 1
        return content_name(said, str(self._seen[said]))
