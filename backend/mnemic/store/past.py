"""Statements over the tables as they were.

A past statement is the present one with each table replaced by what its rows were at `:known_at`,
and each full-text function by the same search among those rows. So what is read of the past is
read as it was read then, whatever a statement asks for. Without an index over the past it reads
every row of the visible scopes: exact, and slower.

Most memories did not change since, and most moments ask for what was live. So a row is put together
from its history only if it has one, vectors are read where they stand but for those that were
replaced since, and what was true at another time (`timed`) is in a text of its own, for it takes
longer to plan than to run.

What was forgotten is in no table, and so in no past.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from mnemic.store.past_columns import COLUMNS, TRACKED

__all__ = ["past_template"]

SCHEMA = "mnemic"
_CALL = re.compile(r"\bmnemic\.(lexical\w*|similar_terms)\(")
_TABLE = re.compile(r"\bmnemic\.(\w+)\b(?!\()")
_BY_KEY = re.compile(
    r"\s+(\w+)\s+WHERE\s+(?:\{tenant:"
    r"|\{keyed:\w+\} AND \1\.model_id = :model AND \1\.memory_id = )"
)
_KEYED = re.compile(r"\s+(\w+)\s+WHERE\s+\{keyed:\1\}")
_LIVE = re.compile(r"\b([a-z]+)\.status = 'live'")
_COUNTS = "counted_then"
_ALIKE_MIN = 0.2  # as the function has it
_NOUNS = ("turn", "episode", "fact", "procedure")
# What is not of a tenant, does not change once it is there, or tells of no time but now.
_UNCHANGED = frozenset(
    {"embedding_models", "outcome", "predicates", "scopes", "tenant_generations", "tenants"}
)
# What both clocks say of a row that has no other life than to be recorded and to happen.
_KNOWN = "{t}.recorded_at <= :known_at"
# What changed of one memory since. The index by time would read all changes of the tenant since
# then, for each memory again; `IS TRUE` keeps the planner from it, and to the index by memory.
_CHANGED = "{{tenant:h}} AND h.memory_id = {id} AND (h.known_until > :known_at) IS TRUE"
_HAPPENED = "{t}.occurred_at <= :true_at"


class _Asked(NamedTuple):
    """How a table is asked: by which wall, whether of what was true at another time, by its keys.

    By its keys means a row at a time; else all of the visible scopes is read.
    """

    within: str
    timed: bool
    by_key: bool = False

    def happened(self, alias: str) -> str:
        """The condition that it had happened by then."""
        return _HAPPENED.format(t=alias) if self.timed else "true"


def past_template(template: str, *, timed: bool) -> str:
    """The template of the past statement; it binds `known_at` too, and `true_at` if it is `timed`.

    Raises `LookupError` for a table whose past is not known.
    """
    # Full-text functions are given the scopes, where others have the predicate.
    scoped = any(word in template for word in ("{owned:", "{keyed:", ":scopes"))
    asked = _Asked("owned" if scoped else "tenant", timed)
    text = _with_searches(_LIVE.sub(r"\1.is_live", template))
    if f"{SCHEMA}.term_stats" in text:
        text = _counted(text, asked.within).replace(f"{SCHEMA}.term_stats", _COUNTS)

    def then(match: re.Match[str]) -> str:
        by_key = _BY_KEY.match(text, match.end()) is not None
        within = "keyed" if _KEYED.match(text, match.end()) else asked.within
        return _table(match[1], asked._replace(by_key=by_key, within=within))

    return _TABLE.sub(then, text)


def _with_searches(text: str) -> str:
    """The text with each call of a full-text function as a query of its own."""
    while (call := _CALL.search(text)) is not None:
        starts, depth, at = [call.end()], 1, call.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            if depth == 1 and text[at] == ",":
                starts.append(at + 1)
            at += 1
        ends = [*(start - 1 for start in starts[1:]), at - 1]
        given = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        text = f"{text[: call.start()]}{_search(call[1], given)}{text[at:]}"
    return text


def _search(function: str, given: list[str]) -> str:
    """What the function finds, in its order; it takes match, rank, scopes, perhaps who, and n."""
    if function == "similar_terms":
        return _alike(*given)
    noun = function.removeprefix("lexical").strip("_")
    match, rank, scopes, *who, limit = given
    live = {
        "": "m.archived_at IS NULL",
        "actor": f"m.archived_at IS NULL AND m.actor_id = {who[0] if who else 'NULL'}",
        "episodes": "m.archived_at IS NULL",
        "facts": "m.is_live AND m.archived_at IS NULL",
        "procedures": "m.is_live AND m.archived_at IS NULL",
    }[noun]
    table = "turns" if noun in ("", "actor") else noun
    return (
        f"(SELECT m.id, ts_rank(m.tsv, {rank}) FROM {SCHEMA}.{table} m"
        f" WHERE m.scope_id = ANY({scopes}) AND m.tsv @@ {match} AND {live}"
        f" ORDER BY 2 DESC, 1 LIMIT {limit})"
    )


def _alike(words: str, scopes: str, limit: str) -> str:
    """Words of the scopes that are spelt nearly as these."""
    return f"""(
        SELECT w.word, m.term, m.alike, m.documents FROM unnest({words}) AS w(word)
         CROSS JOIN LATERAL (
           SELECT s.term, similarity(s.term, w.word) AS alike,
                  CAST(sum(s.documents) AS bigint) AS documents
             FROM {SCHEMA}.term_stats s
            WHERE s.scope_id = ANY({scopes}) AND s.kind = 'term'
              AND similarity(s.term, w.word) >= CAST({_ALIKE_MIN} AS real)
            GROUP BY s.term ORDER BY 2 DESC, 3 DESC, 1 LIMIT {limit}) m)"""


def _table(name: str, asked: _Asked) -> str:
    """What stands for the table."""
    if name in _UNCHANGED:
        return f"{SCHEMA}.{name}"
    if name not in _PAST:
        raise LookupError(
            f"What {SCHEMA}.{name} held in the past is not known; say so in {__name__}"
        )
    return _PAST[name](asked)


def _columns(table: str, **instead: str) -> str:
    """The columns of `t`, but for those that are given otherwise."""
    given = {"stats_counted": "true", **instead}
    return ", ".join(
        f"{given[name]} AS {name}" if name in given else f"t.{name}" for name in COLUMNS[table]
    )


# A turn stands in its session until that ends, and then where it was moved to.
_TURN_STOOD = """CASE WHEN coalesce(s.moved_at, s.ended_at) <= :known_at
                      THEN t.scope_id ELSE t.session_id END"""
_ITS_SESSION = f"LEFT JOIN {SCHEMA}.sessions s ON {{tenant:s}} AND s.id = t.session_id"


def _turns(asked: _Asked) -> str:
    columns = _columns(
        "turns",
        scope_id=_TURN_STOOD,
        archived_at="CASE WHEN t.archived_at <= :known_at THEN t.archived_at END",
    )
    return f"""(
        SELECT {columns} FROM {SCHEMA}.turns t {_ITS_SESSION}
         WHERE {{{asked.within}:t}} AND {_KNOWN.format(t="t")} AND {asked.happened("t")})"""


def _embedded(noun: str, asked: _Asked) -> str:
    """Which memories were known and had a vector, and where they stood: all that a vector needs."""
    join, actor, happened = "", "", "true"
    stood = f"""coalesce(
        (SELECT CAST(h.before ->> 'scope_id' AS uuid) FROM {SCHEMA}.memory_history h
          WHERE {_CHANGED.format(id="t.id")}
            AND h.before ->> 'scope_id' IS NOT NULL ORDER BY h.place LIMIT 1), t.scope_id)"""
    if noun == "turn":
        join, actor, stood = _ITS_SESSION, ", t.actor_id", _TURN_STOOD
    if noun in ("turn", "episode"):
        happened = asked.happened("t")
    return f"""(
        SELECT t.tenant_id, t.id, {stood} AS scope_id{actor} FROM {SCHEMA}.{noun}s t {join}
         WHERE {{{asked.within}:t}} AND {_KNOWN.format(t="t")} AND {happened}
           AND coalesce(t.embedded_at, t.recorded_at) <= :known_at)"""


def _tracked(table: str, within: str, *, where: str = "true") -> str:
    """The rows that were known, as they were before all that changed of them since."""
    columns = ", ".join(
        f"CASE WHEN c.before IS NULL THEN t.{name} ELSE w.{name} END AS {name}"
        if name in TRACKED[table]
        else f"t.{name}"
        for name in COLUMNS[table]
    )
    return f"""
        SELECT {columns} FROM {SCHEMA}.{table} t
         CROSS JOIN LATERAL (
           SELECT jsonb_object_agg(e.key, e.value ORDER BY h.place DESC) AS before
             FROM {SCHEMA}.memory_history h CROSS JOIN LATERAL jsonb_each(h.before) e
            WHERE {_CHANGED.format(id="t.id")}) c
          LEFT JOIN LATERAL (
           SELECT w.* FROM jsonb_populate_record(t, c.before) w
            WHERE c.before IS NOT NULL OFFSET 0) w ON true
         WHERE {{{within}:t}} AND {_KNOWN.format(t="t")} AND {where}"""


def _episodes(asked: _Asked) -> str:
    rows = _tracked("episodes", asked.within, where=asked.happened("t"))
    return f"(SELECT {_columns('episodes')} FROM ({rows}) t)"


def _procedures(asked: _Asked) -> str:
    rows = _tracked("procedures", asked.within)
    return f"(SELECT {_columns('procedures')}, t.status = 'live' AS is_live FROM ({rows}) t)"


def _entities(asked: _Asked) -> str:
    return f"({_tracked('entities', asked.within)})"


def _mentions(_asked: _Asked) -> str:
    return f"""(SELECT t.* FROM {SCHEMA}.entity_mentions t
                 WHERE {{tenant:t}} AND {_KNOWN.format(t="t")})"""


# The last moment by then since which it is told to be true. Of a single-valued predicate there may
# be several, and the value that was last told so holds.
_TOLD = f"""(SELECT max(m.since)
    FROM (SELECT coalesce({{t}}.valid_from, {{t}}.first_learned) AS since
           UNION ALL
          SELECT v.true_since FROM {SCHEMA}.fact_evidence v
           WHERE {{{{tenant:v}}}} AND v.fact_id = {{t}}.id AND v.recorded_at <= :known_at) m
   WHERE m.since <= :true_at)"""
_HELD = f"""(
    ({{t}}.status = 'live' OR {{t}}.status = 'superseded'
      AND coalesce({{t}}.status_reason, '') <> 'retracted in the wider scope'
      AND NOT EXISTS (SELECT FROM {SCHEMA}.facts a
                       WHERE {{{{tenant:a}}}} AND a.id = {{t}}.superseded_by
                         AND a.scope_id <> {{t}}.scope_id))
    AND {_TOLD} IS NOT NULL
    AND CASE WHEN {{t}}.status = 'live' THEN coalesce({{t}}.valid_to > :true_at, true)
             ELSE coalesce({{t}}.valid_to, (SELECT coalesce(a.valid_from, a.first_learned)
                                              FROM {SCHEMA}.facts a
                                             WHERE {{{{tenant:a}}}} AND a.id = {{t}}.superseded_by)
                          ) > :true_at END)"""


def _facts(asked: _Asked) -> str:
    """With a time, what was true then is live; else what was."""
    live = "t.status = 'live' OR coalesce(t.retired_at > :known_at, false)"
    if asked.timed:
        others = f"""SELECT 1 FROM ({_tracked("facts", "tenant", where="t.single_valued")}) o
                      WHERE o.scope_id = t.scope_id AND o.subject_key = t.subject_key
                        AND o.predicate = t.predicate AND o.id <> t.id AND {_HELD.format(t="o")}
                        AND {_TOLD.format(t="o")} > {_TOLD.format(t="t")}"""
        live = f"""{_HELD.format(t="t")} AND NOT (t.single_valued AND EXISTS ({others}))"""
    rows = _tracked("facts", asked.within)
    return f"(SELECT {_columns('facts')}, ({live}) AS is_live FROM ({rows}) t)"


def _vectors(noun: str, asked: _Asked) -> str:
    """The vector that a memory had: where it stands, unless it was replaced or dropped since."""
    if asked.by_key or (noun == "fact" and asked.timed):
        return _vectors_one_by_one(noun, asked)
    rows = _embedded(noun, asked)
    actor = ", p.actor_id" if noun == "turn" else ""
    # `IS TRUE` keeps the planner from joins, of which it would have to guess how many rows are
    # known: it asks for each vector, or for all of the scope's at once where all are read.
    standing = f"""
        SELECT p.tenant_id, p.model_id, p.scope_id, p.memory_id{actor}, p.embedding
          FROM {SCHEMA}.{noun}_vectors p
         WHERE {{{asked.within}:p}}
           AND (EXISTS (SELECT FROM {rows} m
                         WHERE {{{asked.within}:m}} AND m.id = p.memory_id)) IS TRUE"""
    if f"{noun}s" not in TRACKED:  # nothing of it changes, so its vector was never another
        return f"({standing})"
    return f"""({standing}
           AND (EXISTS (SELECT FROM {SCHEMA}.memory_history h
                          JOIN {SCHEMA}.past_vectors k ON {{tenant:k}} AND k.change_id = h.id
                         WHERE {_CHANGED.format(id="p.memory_id")}
                           AND k.model_id = p.model_id)) IS NOT TRUE
        UNION ALL
        SELECT m.tenant_id, k.model_id, m.scope_id, m.id AS memory_id, k.embedding
          FROM (SELECT DISTINCT ON (h.memory_id, k.model_id)
                       h.memory_id, k.model_id, k.embedding
                  FROM {SCHEMA}.memory_history h
                  JOIN {SCHEMA}.past_vectors k ON {{tenant:k}} AND k.change_id = h.id
                 WHERE {{tenant:h}} AND h.known_until > :known_at
                   AND (h.memory_id IN (SELECT m.id FROM {rows} m
                                         WHERE {{{asked.within}:m}})) IS TRUE
                 ORDER BY h.memory_id, k.model_id, h.known_until, h.place) k
          JOIN {rows} m ON m.id = k.memory_id
         WHERE {{{asked.within}:m}})"""


def _vectors_one_by_one(noun: str, asked: _Asked) -> str:
    """The same for each memory by itself; of a fact that was true then, the last that it had."""
    actor = ", m.actor_id" if noun == "turn" else ""
    if f"{noun}s" not in TRACKED:
        return f"""(
        SELECT m.tenant_id, v.model_id, m.scope_id, m.id AS memory_id{actor}, v.embedding
          FROM {_embedded(noun, asked)} m
         CROSS JOIN LATERAL (SELECT p.model_id, p.embedding FROM {SCHEMA}.{noun}_vectors p
                              WHERE {{tenant:p}} AND p.memory_id = m.id OFFSET 0) v)"""
    rows, wanted, since = _embedded(noun, asked), "true", "(h.known_until > :known_at) IS TRUE"
    if noun == "fact" and asked.timed:
        rows, since = _table("facts", asked), "true"
        wanted = "coalesce(m.embedded_at, m.recorded_at) <= :known_at AND m.is_live"
    return f"""(
        SELECT m.tenant_id, v.model_id, m.scope_id, m.id AS memory_id{actor}, v.embedding
          FROM {rows} m
         CROSS JOIN LATERAL (
           SELECT DISTINCT ON (k.model_id) k.model_id, k.embedding
             FROM (SELECT p.model_id, p.embedding, h.known_until, h.place
                     FROM {SCHEMA}.memory_history h
                     JOIN {SCHEMA}.past_vectors p ON {{tenant:p}} AND p.change_id = h.id
                    WHERE {{tenant:h}} AND h.memory_id = m.id AND {since}
                    UNION ALL
                   SELECT p.model_id, p.embedding, 'infinity', 2147483647
                     FROM {SCHEMA}.{noun}_vectors p
                    WHERE {{tenant:p}} AND p.memory_id = m.id) k
            ORDER BY k.model_id, k.known_until <= :known_at, k.known_until, k.place) v
         WHERE {wanted})"""


def _counted(text: str, within: str) -> str:
    """The text, which reads word counts, after a count of all that stood in the scopes then.

    What had not been counted yet is part of the answer too, so the counts are the same. Words are
    counted once for the whole statement, and only those that it asks for.
    """
    rows = " UNION ALL ".join(
        f"""SELECT m.tenant_id, m.scope_id, m.stems, m.stem_count,
                   {"m.role, m.actor" if noun == "turn" else "NULL, NULL"}
              FROM {SCHEMA}.{noun}s m WHERE {{{within}:m}}"""
        for noun in _NOUNS
    )
    # A term stands between spaces; of those that are asked for no text needs to be taken apart.
    terms = (
        """SELECT w.term FROM (SELECT DISTINCT unnest(CAST(:terms AS text[])) AS term) w
            WHERE strpos(' ' || h.stems || ' ', ' ' || w.term || ' ') > 0"""
        if ":terms" in text
        else "SELECT DISTINCT w.term FROM unnest(string_to_array(h.stems, ' ')) AS w(term)"
    )
    counts = f"""
        WITH held_then (tenant_id, scope_id, stems, stem_count, role, actor)
          AS MATERIALIZED ({rows}),
        {_COUNTS} (tenant_id, scope_id, kind, term, documents, occurrences) AS MATERIALIZED (
          SELECT h.tenant_id, h.scope_id, 'term', w.term, count(*), count(*) FROM held_then h
           CROSS JOIN LATERAL ({terms}) w
           GROUP BY 1, 2, 3, 4
           UNION ALL
          SELECT h.tenant_id, h.scope_id,
                 CASE WHEN grouping(h.actor) = 0 THEN 'actor'
                      WHEN grouping(h.role) = 0 THEN 'role' ELSE 'total' END,
                 coalesce(h.actor, h.role, ''), count(*), sum(h.stem_count)
            FROM held_then h
           GROUP BY h.tenant_id, h.scope_id, GROUPING SETS ((), (h.actor), (h.role))
          HAVING grouping(h.actor, h.role) = 3 OR h.actor IS NOT NULL OR h.role IS NOT NULL)"""
    # Of counts that were just made each row is compared once: no index serves the look-up by keys.
    given = text.strip().replace("s.term = w.term OFFSET 0", "s.term = w.term")
    return f"{counts}, {given[5:]}" if given.startswith("WITH ") else f"{counts} {given}"


_PAST: dict[str, Callable[[_Asked], str]] = {
    "turns": _turns,
    "episodes": _episodes,
    "facts": _facts,
    "procedures": _procedures,
    "entities": _entities,
    "entity_mentions": _mentions,
    **{f"{noun}_vectors": partial(_vectors, noun) for noun in _NOUNS},
}
