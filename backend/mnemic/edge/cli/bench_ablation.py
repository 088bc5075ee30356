"""What each part of the score is worth, and what others would be: `bench retrieval --ablate`.

Every turn of a conversation is scored, in memory, by the function that recall scores with. So a
difference is one of the score, and of nothing that finds candidates for it. The conversations are
parted in two halves, by the order of their names: what helps one half alone is chance.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import mul
from typing import TYPE_CHECKING, Any
from uuid import UUID

from mnemic.edge.cli.bench_questions import CATEGORIES, Conversation, Place, Question
from mnemic.edge.cli.bench_variants import OFF, ON, VIEWS, Join, Lend, Variant
from mnemic.edge.cli.writing import write_line
from mnemic.model.ranking import score
from mnemic.model.ranking_values import Candidate, Corpus, QueryWords
from mnemic.model.retrieval_measures import mean, ndcg_at, recall_at, reciprocal_rank
from mnemic.model.token_count import EstimatedTokens
from mnemic.model.turn_vector import turn_text
from mnemic.store.wording import Words, query_of, stems_of, words_of

if TYPE_CHECKING:
    from mnemic.model.embedding import Embedder, Vector
    from mnemic.model.turn import TurnCreate

__all__ = ["MEASURES", "VARIANTS", "Half", "Stage", "document_of", "show", "staged", "tried"]

MEASURES = ("r@5", "r@10", "r@20", "ndcg@10", "mrr", "evidence")
BUDGET = 1_024
HITS_MAX = 100
BASE = Variant(name="the score as it is")
VARIANTS = (BASE, *OFF, *ON)
FALLS_MAX = 0.003
_ADVERSARIAL = len(CATEGORIES)
_BATCH = 64
_BEFORE = 2
_DIGITS = 4
_PRONOUN = re.compile(r"\b(?:he|she|it|they|him|her|them|his|its|their|that)\b", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][a-z]+")
# Ages do not count for turns; any moment will do.
_NOW = datetime(2026, 1, 1, tzinfo=UTC)

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class _Said:
    """A turn, read once: where it stands, what is noted of it, how long it is in a prompt."""

    place: Place
    turn: TurnCreate
    words: Words
    tokens: int


class Stage:
    """One conversation whose turns can be scored by any variant; what is embedded once is kept."""

    def __init__(self, embedder: Embedder, conversation: Conversation, terms_max: int) -> None:
        self._embedder = embedder
        counter = EstimatedTokens()
        self._said = [
            _Said(
                place,
                one.turn,
                words_of(one.turn.text, one.turn.caption),
                counter.count(turn_text(one.turn.actor, one.turn.text, one.turn.caption)),
            )
            for place, one in conversation.turns.items()
        ]
        self._sessions: defaultdict[str, list[TurnCreate]] = defaultdict(list)
        for one in self._said:
            self._sessions[one.place[0]].append(one.turn)
        self._corpus = _corpus([(one.turn, one.words) for one in self._said])
        self._questions = [one for one in conversation.questions if one.category != _ADVERSARIAL]
        actors = tuple(self._corpus.actor_shares)
        self._asked = [
            query_of(one.text, actors=actors, terms_max=terms_max, seen=self._corpus.frequencies)
            for one in self._questions
        ]
        self._known: dict[str, Vector] = {}
        self._views: dict[str, list[list[Vector]]] = {}
        self._cosines: dict[tuple[str, bool], list[list[float]]] = {}
        self._lent: dict[Lend, list[Candidate]] = {}

    @property
    def questions(self) -> int:
        """How many questions have an answer."""
        return len(self._questions)

    async def figures(self, variant: Variant) -> list[Figures]:
        """What the variant finds, for each question."""
        candidates = self.candidates(variant.lend)
        shares = await self._meaning(variant)
        return [
            self._figures(one, query, _near(candidates, cosines), variant)
            for one, query, cosines in zip(self._questions, self._asked, shares, strict=True)
        ]

    def _figures(
        self, question: Question, query: QueryWords, near: list[Candidate], variant: Variant
    ) -> Figures:
        ranked = score(query, near, self._corpus, variant.weights, now=_NOW)
        said = [self._said[one.candidate.id.int] for one in ranked[:HITS_MAX]]
        places = [one.place for one in said]
        pair = (places, question.evidence)
        return {
            **{f"r@{k}": recall_at(k, *pair) for k in (5, 10, 20)},
            "ndcg@10": ndcg_at(10, *pair),
            "mrr": reciprocal_rank(*pair),
            "evidence": recall_at(HITS_MAX, _fitting(said), question.evidence),
        }

    def candidates(self, lend: Lend) -> list[Candidate]:
        """Every turn, by its number; without its cosine."""
        if lend not in self._lent:
            sessions = {name: UUID(int=at) for at, name in enumerate(self._sessions)}
            self._lent[lend] = [
                Candidate(
                    id=UUID(int=number),
                    stems=" ".join((*one.words.stems, *self._borrowed(lend, one))),
                    length=one.words.length,
                    word_count=one.words.word_count,
                    occurred_at=one.turn.occurred_at,
                    session_id=sessions[one.place[0]],
                    seq=one.place[1],
                    actor=one.turn.actor,
                    role=one.turn.role,
                    ends_with_question=one.words.ends_with_question,
                    first_person=one.words.first_person,
                    has_name=one.words.has_name,
                    has_time_expression=one.words.has_time_expression,
                )
                for number, one in enumerate(self._said)
            ]
        return self._lent[lend]

    def _borrowed(self, lend: Lend, one: _Said) -> list[str]:
        session, at = one.place
        before = [turn.text for turn in self._sessions[session][max(0, at - _BEFORE) : at]]
        if lend is Lend.NONE or (
            lend is Lend.NAMES and (one.words.has_name or not _PRONOUN.search(one.turn.text))
        ):
            return []
        texts = before if lend is Lend.ALL else [" ".join(_NAME.findall(text)) for text in before]
        stems = dict.fromkeys(stem for text in texts for stem in stems_of(text))
        return [stem for stem in stems if stem not in one.words.stems]

    async def _meaning(self, variant: Variant) -> list[list[float]]:
        """For each question the cosine of each turn, as the variant has it."""
        views = {name: share for name, share in variant.views.items() if share}
        cosines = {name: await self._cosines_of(name, unnamed=variant.unnamed) for name in views}
        if variant.join is Join.MAX:
            return _joined(cosines, views, max)
        norms = [1.0] * len(self._said)
        if variant.join is Join.MEAN and len(views) > 1:
            norms = [
                _length([(share, self._views[name][at][0]) for name, share in views.items()])
                for at in range(len(self._said))
            ]
        summed = _joined(cosines, views, sum)
        return [
            [value / norm for value, norm in zip(of_one, norms, strict=True)] for of_one in summed
        ]

    async def _cosines_of(self, view: str, *, unnamed: bool) -> list[list[float]]:
        """For each question that of each turn under a view; of several texts the nearest."""
        if (view, unnamed) not in self._cosines:
            asked = await self._embed(
                [one.embed_text if unnamed else one.text for one in self._asked]
            )
            vectors = await self._vectors(view)
            self._cosines[view, unnamed] = [
                [max(sum(map(mul, question, one)) for one in texts) for texts in vectors]
                for question in asked
            ]
        return self._cosines[view, unnamed]

    async def _vectors(self, view: str) -> list[list[Vector]]:
        if view not in self._views:
            texts = [VIEWS[view](self._sessions[one.place[0]], one.place[1]) for one in self._said]
            flat = dict.fromkeys(text for some in texts for text in some)
            new = [text for text in flat if text not in self._known]
            self._known |= zip(new, await self._embed(new), strict=True)
            self._views[view] = [[self._known[text] for text in some] for some in texts]
        return self._views[view]

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        made: list[Vector] = []
        for first in range(0, len(texts), _BATCH):
            made += await self._embedder.embed(texts[first : first + _BATCH])
        return made


def _corpus(turns: Sequence[tuple[TurnCreate, Words]]) -> Corpus:
    """The statistics that the database keeps of a scope, of one conversation."""
    count = len(turns)
    actors = Counter(turn.actor for turn, _ in turns)
    roles = Counter(str(turn.role) for turn, _ in turns)
    return Corpus(
        documents=count,
        average_length=sum(words.length for _, words in turns) / count,
        frequencies=Counter(stem for _, words in turns for stem in set(words.stems)),
        actor_shares={actor: seen / count for actor, seen in actors.items()},
        role_shares={role: seen / count for role, seen in roles.items()},
    )


def _near(candidates: Sequence[Candidate], cosines: Sequence[float]) -> list[Candidate]:
    return [one._replace(cosine=value) for one, value in zip(candidates, cosines, strict=True)]


def _joined(
    cosines: dict[str, list[list[float]]],
    views: dict[str, float],
    join: Callable[[Iterable[float]], float],
) -> list[list[float]]:
    shares = list(views.values())
    return [
        [join(map(mul, shares, values)) for values in zip(*of_one, strict=True)]
        for of_one in zip(*cosines.values(), strict=True)
    ]


def _length(parts: Sequence[tuple[float, Vector]]) -> float:
    summed = [0.0] * len(parts[0][1])
    for share, vector in parts:
        summed = [total + share * value for total, value in zip(summed, vector, strict=True)]
    return sum(map(mul, summed, summed)) ** 0.5 or 1.0


def _fitting(said: Sequence[_Said]) -> list[Place]:
    """Whole turns, the best first, as long as they fit into the budget."""
    kept, used = [], 0
    for one in said:
        if used + one.tokens <= BUDGET:
            kept.append(one.place)
            used += one.tokens
    return kept


@dataclass(frozen=True, slots=True)
class Half:
    """Some of the conversations, by their names, ready to be scored."""

    names: tuple[str, ...]
    stages: tuple[Stage, ...]


def staged(
    conversations: Sequence[Conversation], embedder: Embedder, *, terms_max: int
) -> tuple[Half, ...]:
    """The first half of the conversations, by their names, and the second, which may be less.

    Of one conversation there is one half.
    """
    ordered = sorted(conversations, key=lambda one: one.name)
    middle = (len(ordered) + 1) // 2
    return tuple(
        Half(
            tuple(one.name for one in part),
            tuple(Stage(embedder, one, terms_max) for one in part),
        )
        for part in (ordered[:middle], ordered[middle:])
        if part
    )


async def tried(
    halves: Sequence[Half], variants: Sequence[Variant], *, progress: Callable[[int], None]
) -> dict[str, list[Figures]]:
    """What each variant finds, as means over the questions of each half."""
    found: dict[str, list[Figures]] = {}
    for variant in variants:
        found[variant.name] = []
        for half in halves:
            rows = [row for stage in half.stages for row in await stage.figures(variant)]
            found[variant.name].append({name: mean(row[name] for row in rows) for name in MEASURES})
        progress(1)
    return found


def document_of(halves: Sequence[Half], figures: dict[str, list[Figures]]) -> dict[str, Any]:
    """The figures, shares from 0 to 1; of all variants but the first what they gain or lose.

    `supported` is one that loses no more than `FALLS_MAX` in any measure on any half, and gains in
    r@10 on each.
    """
    [base, *_] = figures.values()
    variants = {}
    for name, of_halves in figures.items():
        gains = [
            {measure: round(one[measure] - before[measure], _DIGITS) for measure in MEASURES}
            for one, before in zip(of_halves, base, strict=True)
        ]
        falls = min(gain[measure] for gain in gains for measure in MEASURES)
        rises = min(gain["r@10"] for gain in gains)
        variants[name] = {"gains": gains, "supported": falls >= -FALLS_MAX and rises > 0.0}
    del variants[BASE.name]
    return {
        "budget": BUDGET,
        "halves": [
            {
                "conversations": list(half.names),
                "questions": sum(stage.questions for stage in half.stages),
                **{measure: round(one[measure], _DIGITS) for measure in MEASURES},
            }
            for half, one in zip(halves, base, strict=True)
        ],
        "variants": variants,
    }


def show(document: dict[str, Any]) -> None:
    """The figures as a table; points of a hundred."""
    halves = document["halves"]
    head = "".join(f"{name:>10}" for name in MEASURES)
    for name, half in zip("AB", halves, strict=False):
        said = ", ".join(half["conversations"])
        write_line(f"Half {name}: {half['questions']} questions about {said}")
    write_line(f"{'':<38}{head}")
    for name, half in zip("AB", halves, strict=False):
        shares = "".join(f"{half[measure] * 100:>10.1f}" for measure in MEASURES)
        write_line(f"{BASE.name:<36}{name:>2}{shares}")
    for variant, one in document["variants"].items():
        for name, gain in zip("AB", one["gains"], strict=False):
            shares = "".join(f"{gain[measure] * 100:>+10.1f}" for measure in MEASURES)
            mark = "  supported" if one["supported"] and name == "A" else ""
            write_line(f"{variant:<36}{name:>2}{shares}{mark}")
    write_line(
        f"Evidence is that within {document['budget']:,} tokens. Supported is what gains in r@10 "
        f"on each half, and loses no more than {FALLS_MAX * 100:.1f} of anything on either."
    )
