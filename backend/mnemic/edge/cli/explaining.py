"""`mnemic why-not`, and what `recall --explain` adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mnemic.edge.cli.documents import why_not_json
from mnemic.edge.cli.memory import id_of, text_of, with_memory
from mnemic.edge.cli.options import FilterOption, JsonOption, MemoryType
from mnemic.edge.cli.scopes import scoped
from mnemic.edge.cli.writing import write_json, write_line
from mnemic.model.filters import Filter
from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.model.explanation import Explanation, WhyNot

__all__ = ["show_explanation", "why_not"]


@scoped()
def why_not(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="The question; - reads standard input.")
    ],
    memory_id: Annotated[
        str, typer.Argument(metavar="ID", help="The memory that should have come back.")
    ],
    *,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="As it was asked. Default: 10.")
    ] = None,
    memory_types: Annotated[
        list[MemoryType] | None,
        typer.Option("--type", help="As it was asked; give it once for each. Default: all."),
    ] = None,
    floor: Annotated[
        float | None, typer.Option("--floor", metavar="0..1", help="As it was asked.")
    ] = None,
    filters: FilterOption = None,
    as_json: JsonOption = False,
    scope: Scope,
) -> None:
    """Say why a memory does not answer a question: the first stage of recall that dropped it."""
    question, wanted = text_of(query, field="query"), id_of(memory_id, field="memory_id")
    answer = with_memory(
        lambda memory: memory.why_not(
            question,
            wanted,
            scope=scope,
            limit=limit,
            memory_types=[one.value for one in memory_types] if memory_types else None,
            floor=floor,
            filters=None if filters is None else Filter.from_text(filters),
        )
    )
    if as_json:
        write_json(why_not_json(answer))
        return
    _show(answer)


def _show(answer: WhyNot) -> None:
    write_line(f"{answer.stage.value}: {answer.detail}.")
    if answer.ranks:
        places = (f"{place} in {arm}" for arm, place in answer.ranks.items())
        write_line(f"Its places: {', '.join(places)}.")


def show_explanation(explanation: Explanation) -> None:
    """A line for each kind that was searched, then one for each memory that an arm found."""
    for one in explanation.searches:
        write_line(f"{one.kind}: {one.plan}, {one.rows} rows")
    for arm in explanation.arms:
        for hit in arm.hits:
            value = "" if hit.value is None else f"  {hit.value:.3f}"
            write_line(f"{arm.kind} {arm.name} {hit.place}. {hit.id}{value}")
