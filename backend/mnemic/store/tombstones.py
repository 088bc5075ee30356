"""Values that were retracted: digests only, consulted along the scope chain on every path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from mnemic.errors import Retracted
from mnemic.model.normalise import comparison_key, digest
from mnemic.model.scope import Scope
from mnemic.store.faults import Raced
from mnemic.store.statement import Statement

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = [
    "NOTED",
    "TombstoneStore",
    "episode_mark",
    "fact_mark",
    "procedure_mark",
    "said_mark",
    "turn_mark",
]

NOTED = "noted"
"""The predicate of what no rule reads: a note, kept in its own words."""

_SENTENCE_MARKS = " .!?,;:\u2026\u3002\uff01\uff1f\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"

# What a telephone makes of a quotation mark or a hyphen is the same word still.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u02b9\u2032\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)

ADD = Statement("""
    INSERT INTO mnemic.tombstones AS t (tenant_id, scope_id, digest, kind, reason, recorded_at)
    SELECT :tenant, :scope, m.digest, :kind, :reason, :now
      FROM unnest(CAST(:marks AS bytea[])) AS m(digest) ORDER BY m.digest
    ON CONFLICT (tenant_id, scope_id, digest)
    DO UPDATE SET lifted_at = NULL, reason = excluded.reason, recorded_at = excluded.recorded_at
""")

REFUSED = Statement("""
    SELECT t.digest FROM mnemic.tombstones t
     WHERE {owned:t} AND t.digest = ANY(CAST(:marks AS bytea[])) AND t.lifted_at IS NULL
""")

# What was lifted is witnessed by the same statement; nothing is said when nothing was refused.
LIFT = Statement("""
    WITH lifted AS (
      UPDATE mnemic.tombstones t SET lifted_at = :now
       WHERE {tenant:t} AND t.scope_id = :scope AND t.digest = :mark AND t.lifted_at IS NULL
      RETURNING t.kind, t.digest
    )
    INSERT INTO mnemic.audit_log (tenant_id, id, scope_id, action, subject_kind, actor,
                                  content_digest, recorded_at)
    SELECT :tenant, :audit_id, :scope, 'tombstone.lift', l.kind, 'api', l.digest, :now
      FROM lifted l
    ON CONFLICT DO NOTHING
""")


def fact_mark(subject: str, predicate: str, value: str) -> bytes:
    """The digest under which a statement is refused, whatever its spelling.

    A note is filed under the name of its scope, which says nothing about it: its text alone counts,
    so that it is refused in the scopes below too.
    """
    if predicate == NOTED:
        return digest("note", _sentence(value))
    return digest("fact", _spelling(subject), predicate, _spelling(value))


def episode_mark(summary: str) -> bytes:
    """The digest under which an experience is refused, whenever it is told again."""
    return digest("episode", _sentence(summary))


def procedure_mark(name: str, actions: Sequence[str]) -> bytes:
    """The digest under which a way of doing something is refused, whatever its spelling."""
    return digest("procedure", _spelling(name), *map(_spelling, actions))


def turn_mark(session: UUID, named: bytes) -> bytes:
    """The digest under which a turn is refused by what names it: its caller's id, or its words."""
    return digest("turn", str(session), named.hex())


def said_mark(session: UUID, said: bytes, at: datetime) -> bytes:
    """The digest under which a turn is refused by its words at their moment, whatever names it."""
    return digest("said", str(session), said.hex(), at.astimezone(UTC).isoformat())


def _spelling(text: str) -> str:
    """The comparison key with plain quotation marks and hyphens."""
    return comparison_key(text.translate(_PLAIN))


def _sentence(text: str) -> str:
    """The spelling without the marks that a sentence may begin and end with."""
    return comparison_key(_spelling(text).strip(_SENTENCE_MARKS) or text)


class TombstoneStore:
    """Plants and consults tombstones. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._let_in: dict[tuple[UUID, ...], set[bytes]] = {}

    async def add(
        self,
        scope: Scope,
        marks: Iterable[bytes],
        *,
        kind: str,
        reason: str | None,
        now: datetime,
    ) -> None:
        """The values are refused in `scope` and below it, until they are lifted."""
        await self._unit.execute(
            ADD, scope=scope.id, marks=sorted(set(marks)), kind=kind, reason=reason, now=now
        )

    async def refused(self, scope: Scope, marks: Sequence[bytes]) -> set[bytes]:
        """Which of the values are refused in `scope`, by itself or by a scope above it."""
        rows = await self._unit.fetch(REFUSED, scopes=scope.visible_ids, marks=list(marks))
        refused = {row["digest"] for row in rows}
        let_in = self._let_in.setdefault(tuple(scope.visible_ids), set())
        let_in.update(one for one in marks if one not in refused)
        return refused

    async def hold(self) -> None:
        """Nothing that was let in by this unit was retracted by others meanwhile.

        Who writes a value waits for whoever is forgetting it, by the row that both of them want,
        and has asked before. Raises `Raced`: the unit is to ask again. No scope: it asked with one.
        """
        for scopes, marks in self._let_in.items():
            if marks and await self._unit.fetch(REFUSED, scopes=list(scopes), marks=list(marks)):
                raise Raced

    async def respect(self, scope: Scope, mark: bytes, *, now: datetime, lift: bool) -> None:
        """The value may stand in `scope`.

        Raises `Retracted` if it was retracted there or above. With `lift` what was retracted in
        exactly this scope is taken back first, and audited.
        """
        if lift:
            # The id follows from what is witnessed, so that a replay gives the same row.
            audit_id = uuid5(scope.id, f"lift;{mark.hex()};{now.isoformat()}")
            await self._unit.execute(LIFT, scope=scope.id, mark=mark, audit_id=audit_id, now=now)
        if await self.refused(scope, [mark]):
            if lift:
                raise Retracted("This value was retracted in a wider scope; lift it from there.")
            raise Retracted
