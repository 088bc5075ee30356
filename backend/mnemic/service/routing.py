"""About how many vectors each leg of a recall would compare."""

from __future__ import annotations

from collections.abc import Sequence

from mnemic.model.ranking_values import QueryWords
from mnemic.settings import RecallSettings
from mnemic.store.approximate import ACTOR, Routing
from mnemic.store.statistics import ScopeStatistics

__all__ = ["may_keep_plans", "routing_of"]


def may_keep_plans(statistics: ScopeStatistics, settings: RecallSettings) -> bool:
    """Whether a search may go by plans that do not see its values, if its tenant is small.

    An index of the tenant's own is taken by a plan alone that sees the tenant.
    """
    return statistics.corpus.documents <= settings.exact_scan_rows_max


def routing_of(
    kinds: Sequence[str], words: QueryWords, statistics: ScopeStatistics, settings: RecallSettings
) -> Routing:
    """The rows of each leg, out of the counts that a recall reads anyway; nothing is counted here.

    Turns are counted by who spoke them, the other kinds together: of each of those there are at
    most as many.
    """
    rows: dict[str, int] = {}
    for kind in kinds:
        rows[kind] = (
            statistics.turns if kind == "turn" else statistics.corpus.documents - statistics.turns
        )
    if "turn" in rows and words.named:
        share = statistics.corpus.actor_shares.get(words.named[0], 0.0)
        rows[ACTOR] = round(share * statistics.turns)
    return Routing(
        rows=rows, exact_rows_max=settings.exact_scan_rows_max, ef_search=settings.hnsw_ef_search
    )
