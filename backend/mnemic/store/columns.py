"""What the rows of every memory share, as values for statements."""

from __future__ import annotations

from mnemic.store.wording import Words, tsvector_text

__all__ = ["wording_values"]


def wording_values(words: Words) -> dict[str, object]:
    """The wording columns of a memory: stems, counts, and the text form of its tsvector."""
    return {
        "stems": words.text,
        "stem_count": words.length,
        "word_count": words.word_count,
        "tsv": tsvector_text(words),
    }
