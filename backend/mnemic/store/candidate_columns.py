"""What is read of a candidate, as parts of the statements that look for candidates."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "COSINE_AT",
    "OTHER_KINDS",
    "READ_OF_KIND",
    "TURN_COLUMNS",
    "cosine_of",
    "other_columns",
    "place_in",
]

# In the order of a `Candidate`, for rows become candidates by their places; its kind and the cosine
# come between.
TURN_COLUMNS = (
    *("id", "stems", "stem_count", "word_count", "occurred_at"),
    *("session_id", "seq", "actor", "role"),
    *("ends_with_question", "first_person", "has_name", "has_time_expr"),
)
COSINE_AT = 5
"""Before which of them the cosine comes."""


class _Other(NamedTuple):
    """What a kind gives for what the kinds do not share, and which of its rows are live."""

    at: str
    actor: str
    importance: str
    confidence: str
    live: str


_NONE = "CAST(NULL AS double precision)"
_LIVE = "m.status = 'live' AND m.archived_at IS NULL"
OTHER_KINDS = {
    "episode": _Other("m.occurred_at", "''", "m.importance_score", _NONE, "m.archived_at IS NULL"),
    "fact": _Other("m.last_reinforced", "m.subject", _NONE, "m.confidence", _LIVE),
    "procedure": _Other("m.updated_at", "''", _NONE, _NONE, _LIVE),
}

# What they are made of.
READ_OF_KIND = {
    noun: ("id", "stems", "stem_count", "word_count", *columns)
    for noun, columns in {
        "episode": ("occurred_at", "importance_score"),
        "fact": ("last_reinforced", "subject", "confidence"),
        "procedure": ("updated_at",),
    }.items()
}


def other_columns(noun: str, *, nearness: str | None = None) -> str:
    """What a candidate of another kind than a turn is made of, read from the row `m`.

    A cosine is looked up where the column `nearness` does not tell it, if there is one.
    """
    other = OTHER_KINDS[noun]
    cosine = cosine_of(noun, "m")
    if nearness is not None:
        cosine = f"coalesce({nearness}, {cosine})"
    return f"""
        m.id, m.stems, m.stem_count, m.word_count, {other.at} AS at, '{noun}' AS kind,
        {cosine} AS cosine, {other.actor} AS actor, {other.importance} AS importance,
        {other.confidence} AS confidence"""


def cosine_of(noun: str, row: str) -> str:
    """The cosine of the question and the memory in `row`; nothing if it has no vector.

    By the key of the vector, whatever the planner knows: the index that holds the vectors by scope
    would be gone through for each memory where a scope or a tenant is taken for small.
    """
    return f"""
        (SELECT -(v.embedding <#> CAST(:vector AS halfvec)) FROM mnemic.{noun}_vectors v
          WHERE {{keyed:v}} AND v.model_id = :model AND v.memory_id = {row}.id)
    """


def place_in(arm: str, row: str) -> str:
    """The place of the memory in `row` among what the part `arm` of the statement found.

    Not by a join: the planner, which takes the arms for small, would build a hash of each for every
    row, and that was a third of the statement.
    """
    return f"array_position((SELECT array_agg(id ORDER BY place) FROM {arm}), {row}.id)"
