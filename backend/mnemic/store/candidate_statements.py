"""The statements that look for candidates: what the arms find, and what stands around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations

from mnemic.store.candidate_columns import (
    COSINE_AT,
    OTHER_KINDS,
    READ_OF_KIND,
    TURN_COLUMNS,
    cosine_of,
    other_columns,
    place_in,
)
from mnemic.store.statement import Statement

__all__ = [
    "NONE_GIVEN",
    "OTHERS",
    "OTHERS_WORDED",
    "PROCEDURES",
    "TURNS",
    "TURNS_OF_ACTOR",
    "TURNS_WORDED",
    "WORDS",
    "arms_of_kind",
    "around",
    "others_statement",
    "turns_statement",
    "words_statement",
]

# The planner must not guess how many rows the arms give: it would read a whole scope to join thirty
# hits, and on tables that were never analysed compare everything with everything. So each hit and
# each neighbour is looked up by its key (LATERAL … OFFSET 0 is not flattened into a join).
# What a key is compared with must be a column: row-level security takes `coalesce` for something
# that may leak, so that a comparison with it looks at each row of the scope, for every hit. Hence
# the OFFSET 0 behind a `coalesce`, which keeps it in a subquery of its own.
# `+ 0` keeps the planner from an approximate index: exact is the default, and routes are explicit.
_NEAR = """
    SELECT v.memory_id AS id, row_number() OVER (ORDER BY v.distance, v.memory_id) AS place,
           -v.distance AS value
      FROM (SELECT v.memory_id, (v.embedding <#> CAST(:vector AS halfvec)) + 0 AS distance
              FROM mnemic.{noun}_vectors v
             WHERE {{owned:v}} AND v.model_id = :model {narrow}
             ORDER BY 2, 1 LIMIT :near) v
"""

# What was found before, best first: the nearest by the tenant's own index (`approximate`), or the
# best by words (`words_statement`).
_GIVEN = """
    SELECT g.id, g.place, CAST(NULL AS double precision) AS value
      FROM unnest(CAST(:{name} AS uuid[])) WITH ORDINALITY AS g(id, place)
"""

_WORDS = """
    SELECT l.id, row_number() OVER (ORDER BY l.rank DESC, l.id) AS place, l.rank AS value
      FROM mnemic.{function}(CAST(CAST(:{match} AS text) AS tsquery),
                             CAST(CAST(:rank AS text) AS tsquery), {scopes},
                             CAST(:words AS int)) AS l(id, rank)
     LIMIT :words
"""

_SCOPES = "CAST(:scopes AS uuid[])"

# What stands around the hits, in their sessions. It ends a statement whose `hit`, `near` and
# `words` are the ids that were found and the places in the two main arms.
_AROUND = """
    place AS (
      SELECT DISTINCT h.session_id, h.seq + d AS seq
        FROM hit
       CROSS JOIN LATERAL (SELECT h.session_id, h.seq FROM mnemic.turns h
                            WHERE {{keyed:h}} AND h.id = hit.id OFFSET 0) h
       CROSS JOIN unnest(CAST(:around AS int[])) AS d
    )
    SELECT {told}
      FROM place
     CROSS JOIN LATERAL (SELECT {read} FROM mnemic.turns t
                          WHERE {{keyed:t}} AND t.session_id = place.session_id
                            AND t.seq = place.seq AND t.archived_at IS NULL OFFSET 0) t
"""
_NO_PLACE = "CAST(NULL AS int)"
_MAIN_ARMS = ("near", "words")
_ACTOR_ARMS = ("actor_near", "actor_words")


def around(*, with_actor: bool, passes: str | None = None) -> str:
    """The end of a statement about turns; the arms of an actor are there, or they are not.

    With `passes`, a condition on the row `t`, the last column tells whether it holds.
    """
    read = [f"t.{name}" for name in TURN_COLUMNS]
    told = [*read[:COSINE_AT], f"{cosine_of('turn', 't')} AS cosine", *read[COSINE_AT:]]
    told += [place_in(arm, "t") for arm in _MAIN_ARMS]
    told += [place_in(arm, "t") if with_actor else _NO_PLACE for arm in _ACTOR_ARMS]
    if passes is not None:
        read = [*read, f"{passes} AS passes"]
        told.append("t.passes")
    return _AROUND.format(read=", ".join(read), told=", ".join(told))


NONE_GIVEN: frozenset[str] = frozenset()


def _words_of(noun: str) -> str:
    """The best by words of a kind.

    Common words are matched together among all turns alone: what is few seldom has both.
    """
    function, match = ("lexical", "match") if noun == "turn" else (f"lexical_{noun}s", "either")
    return _WORDS.format(function=function, match=match, scopes=_SCOPES)


def arms_of_kind(
    noun: str, *, with_actor: bool = False, given: frozenset[str] = NONE_GIVEN
) -> dict[str, str]:
    """The arms that look among the memories of a kind, by name.

    Those in `given` were found before, by the names that `values_of` binds them to.
    """
    arms = {"near": _NEAR.format(noun=noun, narrow=""), "words": _words_of(noun)}
    if with_actor:
        arms["actor_near"] = _NEAR.format(noun=noun, narrow="AND v.actor_id = :actor")
        arms["actor_words"] = _WORDS.format(
            function="lexical_actor", match="either", scopes=f"{_SCOPES}, CAST(:actor AS uuid)"
        )
    names = {"near": f"{noun}_near", "words": f"{noun}_words", "actor_near": "actor_near"}
    arms |= {
        arm: _GIVEN.format(name=name)
        for arm, name in names.items()
        if name in given and arm in arms
    }
    return arms


@cache
def turns_statement(*, with_actor: bool, given: frozenset[str]) -> Statement:
    """Hits of the arms with `:around` neighbours on each side, in their sessions."""
    arms = arms_of_kind("turn", with_actor=with_actor, given=given)
    named = ", ".join(f"{name} AS MATERIALIZED ({arm})" for name, arm in arms.items())
    hits = " UNION ".join(f"SELECT id FROM {name}" for name in arms)
    return Statement(f"""
        WITH {named}, hit AS ({hits} UNION SELECT unnest(CAST(:also AS uuid[]))),
        {around(with_actor=with_actor)}
    """)


@cache
def others_statement(
    kinds: Sequence[str], given: frozenset[str], more: tuple[tuple[str, str], ...] = ()
) -> Statement:
    """Hits of the arms among the memories of `kinds`, and what is made of the columns `more`.

    No row is read as a whole: planning one of thirty columns takes longer, and none is used.
    """

    def of(noun: str) -> str:
        live = OTHER_KINDS[noun].live
        read = ", ".join(f"m.{column}" for column in (*READ_OF_KIND[noun], *dict(more)))
        arms = arms_of_kind(noun, given=given)
        return f"""
            SELECT {other_columns(noun, nearness="h.nearness")},
                   CAST(h.near_place AS int) AS near_place,
                   CAST(h.words_place AS int) AS words_place
                   {"".join(f", {made}" for _, made in more)}
              FROM (SELECT coalesce(n.id, w.id) AS id, n.place AS near_place,
                           w.place AS words_place, n.value AS nearness
                      FROM ({arms["near"]}) n
                      FULL JOIN ({arms["words"]}) w
                        ON w.id = n.id
                    UNION ALL
                    SELECT unnest(CAST(:also AS uuid[])), NULL, NULL, NULL OFFSET 0) h
             CROSS JOIN LATERAL (SELECT {read} FROM mnemic.{noun}s m
                                  WHERE {{keyed:m}} AND m.id = h.id AND {live} OFFSET 0) m
        """

    return Statement(" UNION ALL ".join(map(of, kinds)))


TURNS = turns_statement(with_actor=False, given=NONE_GIVEN)
TURNS_OF_ACTOR = turns_statement(with_actor=True, given=NONE_GIVEN)
# A statement for each choice of kinds: planning one for all of them, to leave two out when it runs,
# takes longer than the whole of one that asks for one kind.
OTHERS = {
    kinds: others_statement(kinds, NONE_GIVEN)
    for many in range(1, len(OTHER_KINDS) + 1)
    for kinds in combinations(OTHER_KINDS, many)
}
# With what a procedure is weighed by. Most have no conditions: a null spares reading "[]" as JSON.
PROCEDURES = others_statement(
    ("procedure",),
    NONE_GIVEN,
    (
        ("success_count", "m.success_count"),
        ("failure_count", "m.failure_count"),
        ("preconditions", "nullif(m.preconditions, '[]')"),
        ("avoid_conditions", "nullif(m.avoid_conditions, '[]')"),
    ),
)


@cache
def words_statement(kinds: Sequence[str]) -> Statement:
    """The best by words of each of `kinds`, best first."""
    return Statement(
        " UNION ALL ".join(
            f"SELECT '{noun}', array_agg(w.id ORDER BY w.place) FROM ({_words_of(noun)}) w"
            for noun in kinds
        )
    )


WORDS = words_statement(("turn", *OTHER_KINDS))
TURNS_WORDED = turns_statement(with_actor=False, given=frozenset({"turn_words"}))
OTHERS_WORDED = others_statement(
    tuple(OTHER_KINDS), frozenset(f"{kind}_words" for kind in OTHER_KINDS)
)
