"""Statements over the tables as they were.

A past statement is the present one with each table replaced by what its rows were at `:known_at`,
and each full-text function by the same search among those rows. So what is read of the past is
read as it was read then, whatever a statement asks for. Without an index over the past it reads
every row of the visible scopes: exact, and slower.

What was forgotten is in no table, and so in no past.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from mnemic.store.past_columns import COLUMNS, TRACKED

__all__ = ["past_template"]

SCHEMA = "mnemic"
_CALL = re.compile(r"\bmnemic\.(lexical\w*|similar_terms)\(")
_TABLE = re.compile(r"\bmnemic\.(\w+)\b(?!\()")
_LIVE = re.compile(r"\b([a-z]+)\.status = 'live'")
_COUNTS = "counted_then"
_ALIKE_MIN = 0.2  # as the function has it
_NOUNS = ("turn", "episode", "fact", "procedure")
# What is not of a tenant, or does not change once it is there.
_UNCHANGED = frozenset({"embedding_models", "outcome", "predicates", "scopes", "tenants"})
# What both clocks say of a row that has no other life than to be recorded and to happen.
_KNOWN = "{t}.recorded_at <= :known_at"
_HAPPENED = "(CAST(:true_at AS timestamptz) IS NULL OR {t}.occurred_at <= :true_at)"


def past_template(template: str) -> str:
    """The template of the past statement; it binds `known_at` and `true_at` too.

    Raises `LookupError` for a table whose past is not known.
    """
    within = "owned" if "{owned:" in template else "tenant"
    text = _with_searches(_LIVE.sub(r"\1.is_live", template))
    if f"{SCHEMA}.term_stats" in text:
        text = _counted(text, within).replace(f"{SCHEMA}.term_stats", _COUNTS)
    return _TABLE.sub(lambda match: _table(match[1], within), text)


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


def _table(name: str, within: str) -> str:
    """What stands for the table; `within` tells the wall of the statement it is read by."""
    if name in _UNCHANGED:
        return f"{SCHEMA}.{name}"
    if name not in _PAST:
        raise LookupError(
            f"What {SCHEMA}.{name} held in the past is not known; say so in {__name__}"
        )
    return _PAST[name](within)


def _columns(table: str, **instead: str) -> str:
    """The columns of `t`, but for those that are given otherwise."""
    given = {"stats_counted": "true", **instead}
    return ", ".join(
        f"{given[name]} AS {name}" if name in given else f"t.{name}" for name in COLUMNS[table]
    )


def _turns(within: str) -> str:
    """A turn stands in its session until that ends, and then where it was moved to."""
    columns = _columns(
        "turns",
        scope_id="""CASE WHEN coalesce(s.moved_at, s.ended_at) <= :known_at
                         THEN t.scope_id ELSE t.session_id END""",
        archived_at="CASE WHEN t.archived_at <= :known_at THEN t.archived_at END",
    )
    return f"""(
        SELECT {columns} FROM {SCHEMA}.turns t
          LEFT JOIN {SCHEMA}.sessions s ON {{tenant:s}} AND s.id = t.session_id
         WHERE {{{within}:t}} AND {_KNOWN.format(t="t")} AND {_HAPPENED.format(t="t")})"""


def _tracked(table: str, within: str, *, where: str = "true") -> str:
    """The rows that were known, as they were before all that changed of them since."""
    columns = ", ".join(
        f"{'w' if name in TRACKED[table] else 't'}.{name}" for name in COLUMNS[table]
    )
    return f"""
        SELECT {columns} FROM {SCHEMA}.{table} t
         CROSS JOIN LATERAL jsonb_populate_record(t, coalesce(
           (SELECT jsonb_object_agg(e.key, e.value ORDER BY h.place DESC)
              FROM {SCHEMA}.memory_history h CROSS JOIN LATERAL jsonb_each(h.before) e
             WHERE {{tenant:h}} AND h.memory_id = t.id AND h.known_until > :known_at), '{{}}')) w
         WHERE {{{within}:t}} AND {_KNOWN.format(t="t")} AND {where}"""


def _episodes(within: str) -> str:
    rows = _tracked("episodes", within, where=_HAPPENED.format(t="t"))
    return f"(SELECT {_columns('episodes')} FROM ({rows}) t)"


def _procedures(within: str) -> str:
    rows = _tracked("procedures", within)
    return f"(SELECT {_columns('procedures')}, t.status = 'live' AS is_live FROM ({rows}) t)"


def _entities(within: str) -> str:
    return f"({_tracked('entities', within)})"


def _mentions(_within: str) -> str:
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


def _facts(within: str) -> str:
    """With a time, what was true then is live; else what was."""
    others = f"""SELECT 1 FROM ({_tracked("facts", "tenant", where="t.single_valued")}) o
                  WHERE o.scope_id = t.scope_id AND o.subject_key = t.subject_key
                    AND o.predicate = t.predicate AND o.id <> t.id AND {_HELD.format(t="o")}
                    AND {_TOLD.format(t="o")} > {_TOLD.format(t="t")}"""
    live = f"""CASE WHEN CAST(:true_at AS timestamptz) IS NULL
                    THEN t.status = 'live' OR coalesce(t.retired_at > :known_at, false)
                    ELSE {_HELD.format(t="t")}
                         AND NOT (t.single_valued AND EXISTS ({others})) END"""
    rows = _tracked("facts", within)
    return f"(SELECT {_columns('facts')}, {live} AS is_live FROM ({rows}) t)"


def _vectors(noun: str, within: str) -> str:
    """The vector that a memory had; of what was true at another time, the last that it had."""
    actor = ", m.actor_id" if noun == "turn" else ""
    then = "CAST(:true_at AS timestamptz) IS NOT NULL" if noun == "fact" else "false"
    wanted = f"(NOT {then} OR m.is_live)" if noun == "fact" else "true"
    return f"""(
        SELECT m.tenant_id, v.model_id, m.scope_id, m.id AS memory_id{actor}, v.embedding
          FROM {_table(f"{noun}s", within)} m
         CROSS JOIN LATERAL (
           SELECT DISTINCT ON (k.model_id) k.model_id, k.embedding
             FROM (SELECT p.model_id, p.embedding, h.known_until, h.place
                     FROM {SCHEMA}.memory_history h
                     JOIN {SCHEMA}.past_vectors p ON {{tenant:p}} AND p.change_id = h.id
                    WHERE {{tenant:h}} AND h.memory_id = m.id
                      AND (h.known_until > :known_at OR {then})
                    UNION ALL
                   SELECT p.model_id, p.embedding, 'infinity', 2147483647
                     FROM {SCHEMA}.{noun}_vectors p
                    WHERE {{tenant:p}} AND p.memory_id = m.id) k
            ORDER BY k.model_id, k.known_until <= :known_at, k.known_until, k.place) v
         WHERE coalesce(m.embedded_at, m.recorded_at) <= :known_at AND {wanted})"""


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
    asked = "w.term = ANY(CAST(:terms AS text[]))" if ":terms" in text else "true"

    def by(kind: str, term: str) -> str:
        return f"""SELECT h.tenant_id, h.scope_id, '{kind}', {term}, count(*), sum(h.stem_count)
                     FROM held_then h WHERE {term} IS NOT NULL GROUP BY 1, 2, 3, 4"""

    counts = f"""
        WITH held_then (tenant_id, scope_id, stems, stem_count, role, actor)
          AS MATERIALIZED ({rows}),
        {_COUNTS} (tenant_id, scope_id, kind, term, documents, occurrences) AS MATERIALIZED (
          SELECT h.tenant_id, h.scope_id, 'term', w.term, count(*), count(*) FROM held_then h
           CROSS JOIN LATERAL (SELECT DISTINCT w.term
                                 FROM unnest(string_to_array(h.stems, ' ')) AS w(term)
                                WHERE {asked}) w
           GROUP BY 1, 2, 3, 4
           UNION ALL {by("total", "''")} UNION ALL {by("actor", "h.actor")}
           UNION ALL {by("role", "h.role")})"""
    given = text.strip()
    return f"{counts}, {given[5:]}" if given.startswith("WITH ") else f"{counts} {given}"


_PAST: dict[str, Callable[[str], str]] = {
    "turns": _turns,
    "episodes": _episodes,
    "facts": _facts,
    "procedures": _procedures,
    "entities": _entities,
    "entity_mentions": _mentions,
    **{f"{noun}_vectors": partial(_vectors, noun) for noun in _NOUNS},
}
