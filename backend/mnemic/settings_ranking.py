"""What can be set of the score of recall."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from mnemic.model.ranking_values import Weights
from mnemic.settings_section import Section

__all__ = ["RankingSettings"]

_Weight = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_BY_DEFAULT = Weights()


class RankingSettings(Section):
    """The weights of the score (`model/ranking.py`); floor and confidence stand on the defaults."""

    k1: float = Field(default=_BY_DEFAULT.k1, ge=0, le=10, description="how little repeats add")
    b: _Weight = Field(default=_BY_DEFAULT.b, description="how much a long text is lowered")
    nb: _Weight = Field(default=_BY_DEFAULT.nb, description="words of the text itself")
    pair: _Weight = Field(default=_BY_DEFAULT.pair, description="words of it and the turn before")
    pair_words_max: int = Field(
        default=_BY_DEFAULT.pair_words_max, ge=0, le=1_000_000, description="read as such a pair"
    )
    cosine: _Weight = Field(default=_BY_DEFAULT.cosine, description="meaning; words have the rest")
    cosine_long_mixed: _Weight = Field(
        default=_BY_DEFAULT.cosine_long_mixed, description="the same in long chats of an assistant"
    )
    long_mixed_length: float = Field(
        default=_BY_DEFAULT.long_mixed_length, ge=0, le=1_000_000, description="which such are long"
    )
    unread: _Weight = Field(
        default=_BY_DEFAULT.unread, description="part of meaning in letters the model does not read"
    )
    previous: _Weight = Field(default=_BY_DEFAULT.previous, description="the turn before")
    next: _Weight = Field(default=_BY_DEFAULT.next, description="the turn behind")
    session: _Weight = Field(default=_BY_DEFAULT.session, description="the best turn around")
    session_turns: int = Field(
        default=_BY_DEFAULT.session_turns, ge=0, le=100, description="how far around that is"
    )
    actor: _Weight = Field(default=_BY_DEFAULT.actor, description="said by who is asked about")
    actor_rarity: _Weight = Field(
        default=_BY_DEFAULT.actor_rarity, description="more for one who speaks rarely"
    )
    question: _Weight = Field(default=_BY_DEFAULT.question, description="taken off a question")
    name: _Weight = Field(default=_BY_DEFAULT.name, description="a name where one is asked for")
    date: _Weight = Field(default=_BY_DEFAULT.date, description="of the date asked for")
    when: _Weight = Field(default=_BY_DEFAULT.when, description="a time where one is asked for")
    importance: _Weight = Field(default=_BY_DEFAULT.importance, description="half of it up or down")
    confidence: _Weight = Field(default=_BY_DEFAULT.confidence, description="half of it up or down")
    recency: _Weight = Field(default=_BY_DEFAULT.recency, description="half of it up or down")
    recency_half_life: timedelta = Field(
        default=_BY_DEFAULT.recency_half_life, gt=timedelta(0), le=timedelta(days=36_600)
    )

    def weights(self) -> Weights:
        """As the score takes them; made once for equal settings."""
        return _weights_of(self)


@lru_cache(maxsize=16)
def _weights_of(settings: RankingSettings) -> Weights:
    return Weights(**dict(settings))
