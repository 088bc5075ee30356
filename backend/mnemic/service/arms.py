"""What recall makes of a question beyond meaning and words, where it gives reason to."""

from __future__ import annotations

from calendar import month_name
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from mnemic.model.cues import Cues, date_spans
from mnemic.model.embedding import recentred
from mnemic.model.filters import Filter
from mnemic.model.ranking_values import Candidate, QueryWords, Scored
from mnemic.model.recall import RecallQuery
from mnemic.model.scope import Scope
from mnemic.model.scripts import is_mostly, scripts_in
from mnemic.model.spelling import may_be_misspelt, nearest_spelling
from mnemic.service.tools import Tools
from mnemic.settings import RecallSettings
from mnemic.store.arms import ENTITY, TIME, FurtherArm, TimeQuery
from mnemic.store.retrieval import CandidateQuery, Found
from mnemic.store.statistics import PENDING_MAX, ScopeStatistics
from mnemic.store.unit import Unit
from mnemic.store.wording import names_text, query_of

__all__ = [
    "Kinds",
    "doubtful_words",
    "further",
    "notes_on",
    "places_of",
    "respelt",
    "shortfall",
    "told_apart",
    "words_asked",
]


def words_asked(tools: Tools, text: str, statistics: ScopeStatistics) -> QueryWords:
    """The words of a question without the names of those who speak."""
    words = query_of(
        text,
        actors=statistics.actors,
        terms_max=tools.settings.limits.query_terms_max,
        things=statistics.things,
        seen=statistics.corpus.frequencies,
    )
    scripts = tools.embedder.signature.scripts
    if scripts is not None and not is_mostly(words.embed_text, scripts):
        return replace(words, unread=True)
    return words


def doubtful_words(tools: Tools, words: QueryWords, statistics: ScopeStatistics) -> list[str]:
    """The stems that may be misspelt; none if any of the question's is written here."""
    frequencies = statistics.corpus.frequencies
    if not tools.settings.recall.spelling or any(frequencies.get(stem) for stem in words.stems):
        return []
    return [stem for stem in words.stems if may_be_misspelt(stem)]


async def respelt(
    tools: Tools, scope: Scope, words: QueryWords, statistics: ScopeStatistics
) -> tuple[QueryWords, ScopeStatistics]:
    """The question in words that are written here, if none of its own is; else as it was.

    A word is replaced by the nearest in spelling of those that the visible memories have.
    """
    if not (doubtful := doubtful_words(tools, words, statistics)):
        return words, statistics
    similar = await tools.transact(
        scope.tenant.id,
        lambda unit: unit.retrieval.arms.similar(scope, doubtful),
        read_only=True,
    )
    uncounted = Counter(word for stems in statistics.uncounted for word in set(stems.split(" ")))
    read_as: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for stem in doubtful:
        terms = Counter({one.term: one.documents for one in similar if one.word == stem})
        terms.update(uncounted)
        if nearest := nearest_spelling(stem, terms):
            read_as[stem] = nearest
            counts[nearest] = terms[nearest]
    if not read_as:
        return words, statistics
    stems = tuple(dict.fromkeys(read_as.get(stem, stem) for stem in words.stems))
    corpus = replace(statistics.corpus, frequencies=counts)
    return (
        replace(words, stems=stems, respelt=tuple(read_as.items())),
        replace(statistics, corpus=corpus),
    )


class Kinds(NamedTuple):
    """The kinds of memory that are searched whole, and those of which the filter leaves out some.

    A kind of which nothing can pass is in neither.
    """

    plain: tuple[str, ...]
    narrowed: tuple[str, ...] = ()
    filters: Filter | None = None


async def further(
    unit: Unit,
    scope: Scope,
    words: QueryWords,
    arms: CandidateQuery,
    settings: RecallSettings,
    kinds: Kinds,
) -> tuple[FurtherArm, ...]:
    """What happened at the times, and has the other names, that the question gives.

    Of the kinds that are narrowed each arm finds what passes alone.
    """
    spans = (*words.cues.ranges, *date_spans(words.cues.dates))
    names = names_text(words)
    times = TimeQuery(spans, arms.vector, arms.model, arms.per_arm, settings.time_candidates_max)
    plain, filtered = unit.retrieval.arms, unit.filtered
    found = []
    for kind in (*kinds.plain, *kinds.narrowed):
        filters = kinds.filters if kind in kinds.narrowed else None
        if spans and settings.time_candidates_max:
            if filters is None:
                inside = await plain.inside(scope, kind, times)
            else:
                inside = await filtered.inside(scope, kind, times, filters)
            found.append(FurtherArm(kind, TIME, tuple(inside)))
        if names is not None:
            if filters is None:
                naming = await plain.naming(scope, kind, names, few=arms.per_arm)
            else:
                naming = await filtered.naming(scope, kind, names, filters, few=arms.per_arm)
            found.append(FurtherArm(kind, ENTITY, tuple(naming)))
    return tuple(found)


def places_of(found: Found, arms: CandidateQuery, words: QueryWords) -> dict[str, int | None]:
    """The place of a candidate in every arm, by the names that a hit has for them."""
    identity: UUID = found.candidate.id
    by_arm = {arm.name: arm.ids.index(identity) + 1 for arm in arms.further if identity in arm.ids}
    return {
        "near_place": found.near_place,
        "words_place": None if words.respelt else found.words_place,
        "actor_near_place": found.actor_near_place,
        "actor_words_place": None if words.respelt else found.actor_words_place,
        "spelling_place": found.words_place if words.respelt else None,
        "entity_place": by_arm.get(ENTITY),
        "time_place": by_arm.get(TIME),
    }


def told_apart(candidates: list[Candidate]) -> list[Candidate]:
    """Cosines to a question that the model cannot read; of a memory that has none it stays none."""
    cosines = iter(recentred([one.cosine for one in candidates if one.cosine is not None]))
    return [one if one.cosine is None else one._replace(cosine=next(cosines)) for one in candidates]


def notes_on(tools: Tools, words: QueryWords, arms: CandidateQuery) -> tuple[str, ...]:
    """What the model of meaning cannot read of the question, and how the question was understood.

    Without a vector the model was not asked to.
    """
    signature = tools.embedder.signature
    notes = [f"{word!r} is written nowhere here; read as {term!r}" for word, term in words.respelt]
    if arms.vector is not None and signature.scripts is not None:
        unread = [one for one in scripts_in(words.embed_text) if one not in signature.scripts]
        if unread:
            shown = ", ".join(unread)
            notes.insert(
                0, f"{signature.name} does not read {shown}: found by words, hardly by meaning"
            )
    return (*notes, *_any_year(words.cues))


def _any_year(cues: Cues) -> tuple[str, ...]:
    """That no year was guessed for a month."""
    if not cues.any_year:
        return ()
    named = ", ".join(month_name[month] for month in cues.any_year)
    return (f"no year is named with {named}: that of every year counts, and no other is left out",)


def shortfall(
    query: RecallQuery,
    scored: Sequence[Scored],
    kept: Sequence[Scored],
    statistics: ScopeStatistics,
) -> tuple[str, ...]:
    """Why fewer come back than were asked for, if that is so."""
    notes = []
    if len(kept) < query.limit:
        below = len(scored) - len(kept)
        if not statistics.corpus.documents:
            notes.append("nothing is remembered in this scope yet")
        elif not scored and query.filters is not None:
            notes.append("nothing that is remembered here passes the filter")
        elif not kept:
            all_of = "1 candidate lies" if below == 1 else f"{below} candidates lie"
            notes.append(f"nothing relevant: {all_of} below {query.floor:.2f}")
        elif below:
            more = "1 further candidate lies" if below == 1 else f"{below} further candidates lie"
            notes.append(f"{more} below {query.floor:.2f}")
        else:
            ends = "comes near" if query.text else "passes the filter"
            notes.append(f"nothing else that is remembered here {ends}")
    if statistics.pending >= PENDING_MAX:
        notes.append("word statistics are catching up")
    return tuple(notes)
