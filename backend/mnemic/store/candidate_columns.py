"""What is read of a candidate, as parts of the statements that look for candidates."""

from __future__ import annotations

__all__ = ["OTHER_KINDS", "READ_OF_KIND", "TURN_COLUMNS", "cosine_of", "place_in"]

TURN_COLUMNS = """
    t.id, t.session_id, t.seq, t.actor, t.role, t.stems, t.stem_count, t.word_count, t.occurred_at,
    t.ends_with_question, t.first_person, t.has_name, t.has_time_expr
"""

# What each kind gives for the columns that the kinds do not share, and which rows are live.
_NONE = "CAST(NULL AS double precision)"
OTHER_KINDS = {
    "episode": (
        f"m.occurred_at, '' AS actor, m.importance_score AS importance, {_NONE} AS confidence",
        "m.archived_at IS NULL",
    ),
    "fact": (
        f"m.last_reinforced, m.subject, {_NONE}, m.confidence",
        "m.status = 'live' AND m.archived_at IS NULL",
    ),
    "procedure": (
        f"m.updated_at, '', {_NONE}, {_NONE}",
        "m.status = 'live' AND m.archived_at IS NULL",
    ),
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


def cosine_of(noun: str, row: str) -> str:
    """The cosine of the question and the memory in `row`; nothing if it has no vector.

    By the key of the vector: with the scopes in it, the index that holds the vectors by scope looks
    dearer, whatever the planner knows. Without them it was as cheap where a tenant was taken for
    small, and all vectors of the tenant were gone through for each memory.
    """
    return f"""
        (SELECT -(v.embedding <#> CAST(:vector AS halfvec)) FROM mnemic.{noun}_vectors v
          WHERE {{owned:v}} AND v.model_id = :model AND v.memory_id = {row}.id)
    """


def place_in(arm: str, row: str) -> str:
    """The place of the memory in `row` among what the part `arm` of the statement found.

    Not by a join: the planner, which takes the arms for small, would build a hash of each for every
    row, and that was a third of the statement.
    """
    return f"array_position((SELECT array_agg(id ORDER BY place) FROM {arm}), {row}.id)"
