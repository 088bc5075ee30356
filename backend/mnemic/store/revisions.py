"""Where a database stands among the revisions of its schema, told without Alembic.

A service asks this at every start; Alembic and SQLAlchemy, which take longer to import than all
the rest, are needed only to move a schema. The names of the migrations' files are their revisions,
in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import asyncpg

from mnemic.errors import SchemaMismatch

__all__ = ["Revision", "known_revisions", "migrations_folder", "refuse_unknown", "revision_of"]

_TABLE = "mnemic.alembic_version"
_FILE = re.compile(r"(?P<revision>\d{4})_\w+\.py")


@dataclass(frozen=True, slots=True)
class Revision:
    """Where a database stands: `current` is nothing before the first upgrade."""

    current: str | None
    head: str
    pending: tuple[str, ...]

    @property
    def is_head(self) -> bool:
        """Whether this release can serve it as it is."""
        return self.current == self.head


def migrations_folder() -> Path:
    """The migrations: in the installed package, else beside the checkout's source."""
    package = Path(str(files("mnemic")))
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parents[1] / "migrations"


@cache
def known_revisions() -> tuple[str, ...]:
    """Every revision of this release, oldest first; the history is one line."""
    names = (_FILE.fullmatch(path.name) for path in (migrations_folder() / "versions").iterdir())
    return tuple(sorted(name["revision"] for name in names if name))


def refuse_unknown(heads: Iterable[str], known: Sequence[str]) -> None:
    """Raises `SchemaMismatch` if the database stands at a revision that this release lacks."""
    stands = sorted(heads)
    if len(stands) > 1:
        raise SchemaMismatch(
            f"the database is at {len(stands)} revisions at once ({', '.join(stands)}); "
            "restore it from a backup"
        )
    unknown = [head for head in stands if head not in known]
    if not unknown:
        return
    newest = max(known)
    if all(len(head) == len(newest) and head.isdigit() and head > newest for head in unknown):
        raise SchemaMismatch(
            f"the database is at revision {unknown[0]}, newer than this release's {newest}; "
            "upgrade mnemic"
        )
    raise SchemaMismatch(
        f"the database is at revision {unknown[0]}, which is none of mnemic's; "
        "choose another database"
    )


async def revision_of(connection: Any) -> Revision:
    """Where the connection's database stands.

    Raises `SchemaMismatch` if it is newer than this release, somebody else's, or only half there,
    so that the role may not even ask.
    """
    known = known_revisions()
    try:
        # Asked first, since a missing table would end the caller's transaction.
        exists = await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", _TABLE)
        rows = await connection.fetch(f"SELECT version_num FROM {_TABLE}") if exists else []
    except asyncpg.InsufficientPrivilegeError as fault:
        raise SchemaMismatch from fault
    heads = [row["version_num"] for row in rows]
    refuse_unknown(heads, known)
    stands = known.index(heads[0]) + 1 if heads else 0
    return Revision(heads[0] if heads else None, known[-1], known[stands:])
