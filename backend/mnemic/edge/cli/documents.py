"""The JSON documents of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.model.context import Context, ContextPart
    from mnemic.model.explanation import Explanation, WhyNot
    from mnemic.model.recall import Hit, Recall
    from mnemic.model.session import Session
    from mnemic.service.ingest import IngestReport

__all__ = [
    "context_json",
    "explanation_json",
    "hit_json",
    "ingest_json",
    "recall_json",
    "scope_json",
    "session_json",
    "why_not_json",
]

SCORE_DIGITS = 4


def scope_json(scope: Scope) -> dict[str, str]:
    """The tenant and the levels of a path, each by its caller's name."""
    return {
        scope.tenant.kind.value: scope.tenant.external_id,
        **{level.value: name for level, name in scope.path},
    }


def hit_json(hit: Hit) -> dict[str, Any]:
    """A hit with everything that its score is made of."""
    return {
        "id": hit.id,
        "kind": hit.kind,
        "score": round(hit.score, SCORE_DIGITS),
        "occurred_at": hit.occurred_at,
        "text": hit.text,
        "trust": hit.trust.name.lower(),
        "source": hit.source,
        "why": list(hit.why),
        "reasons": {
            name: round(value, SCORE_DIGITS) for name, value in hit.reasons._asdict().items()
        },
        "near_place": hit.near_place,
        "words_place": hit.words_place,
        "actor_near_place": hit.actor_near_place,
        "actor_words_place": hit.actor_words_place,
        "spelling_place": hit.spelling_place,
        "entity_place": hit.entity_place,
        "time_place": hit.time_place,
    }


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """How a question was searched, and what each arm found."""
    return {
        "searches": [
            {"kind": one.kind, "plan": one.plan, "rows": one.rows} for one in explanation.searches
        ],
        "arms": [
            {
                "kind": arm.kind,
                "name": arm.name,
                "hits": [
                    {"id": hit.id, "place": hit.place, "value": _rounded(hit.value)}
                    for hit in arm.hits
                ],
            }
            for arm in explanation.arms
        ],
    }


def why_not_json(answer: WhyNot) -> dict[str, Any]:
    """Where a memory was dropped, and what is known of it there."""
    return {
        "id": answer.id,
        "stage": answer.stage.value,
        "detail": answer.detail,
        "kind": answer.kind,
        "score": _rounded(answer.score),
        "place": answer.place,
        "ranks": dict(answer.ranks),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, SCORE_DIGITS)


def recall_json(found: Recall, *, query: str, scope: Scope) -> dict[str, Any]:
    """An answer with its hits, and how far it may be relied on."""
    return {
        "query": query,
        "scope": scope_json(scope),
        "hits": [hit_json(hit) for hit in found.hits],
        "confidence": round(found.confidence, SCORE_DIGITS),
        "low_confidence": found.low_confidence,
        "about_other_actor": found.about_other_actor,
        "searched": found.searched,
        "limit": found.limit,
        "notes": list(found.notes),
        "degraded": list(found.degraded),
        "took_ms": round(found.took.total_seconds() * 1_000, 1),
        **(
            {}
            if found.explanation is None
            else {"explanation": explanation_json(found.explanation)}
        ),
    }


def context_json(built: Context) -> dict[str, Any]:
    """A prompt section, what it holds, and what was left out."""
    return {
        "text": built.text,
        "form": built.form,
        "tokens": built.tokens,
        "budget": built.budget,
        "stable": _part_json(built.stable),
        "volatile": _part_json(built.volatile),
        "sections": [{"title": one.title, "items": list(one.items)} for one in built.sections],
        "items": [
            {
                "id": one.id,
                "kind": one.kind,
                "section": one.section,
                "trust": one.trust.name.lower(),
                "source": one.source,
            }
            for one in built.items
        ],
        "omitted": [
            {"title": one.title, "item": one.item, "reason": one.reason} for one in built.omitted
        ],
        "degraded": list(built.degraded),
    }


def _part_json(part: ContextPart) -> dict[str, Any]:
    return {"text": part.text, "tokens": part.tokens, "hash": part.hash}


def session_json(session: Session) -> dict[str, Any]:
    """A session as it is kept."""
    return {
        "id": session.id,
        "name": session.name,
        "state": session.state.value,
        "started_at": session.started_at,
        "ended_at": session.ended_at,
        "episode_id": session.episode_id,
        "turn_count": session.turn_count,
    }


def ingest_json(report: IngestReport) -> dict[str, Any]:
    """What a run of ingest did."""
    return {
        "turns_added": report.turns_added,
        "turns_known": report.turns_known,
        "turns_left_out": report.turns_left_out,
        "episodes_created": report.episodes_created,
        "facts_added": report.facts_added,
        "facts_known": report.facts_known,
        "sessions": [
            {
                "name": one.name,
                "scope": scope_json(one.scope),
                "turns_added": one.turns_added,
                "turns_known": one.turns_known,
                "turns_left_out": one.turns_left_out,
                "episode_id": one.episode_id,
                "episode_created": one.episode_created,
                "title": one.title,
            }
            for one in report.sessions
        ],
        "problem_count": report.problem_count,
        "problems": [
            {"line": one.line, "session": one.session, "reason": one.reason}
            for one in report.problems
        ],
    }
