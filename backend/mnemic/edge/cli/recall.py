"""`mnemic recall` and `mnemic context`."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemic.edge.cli.documents import context_json, recall_json
from mnemic.edge.cli.explaining import show_explanation
from mnemic.edge.cli.memory import text_of, with_memory
from mnemic.edge.cli.options import (
    AsOfOption,
    FilterOption,
    JsonOption,
    KnownAtOption,
    MemoryType,
    moment_of,
)
from mnemic.edge.cli.scopes import described, scoped
from mnemic.edge.cli.writing import (
    clipped,
    is_terminal,
    printable,
    result_console,
    write_json,
    write_line,
    write_side,
)
from mnemic.model.context import ContextForm
from mnemic.model.filters import Filter
from mnemic.model.scope import MemoryScope, Scope

if TYPE_CHECKING:
    from rich.table import Table

    from mnemic.model.recall import Hit, Recall

__all__ = ["context", "recall", "show_recall"]

TEXT_CHARS_MAX = 400
_NUMBER = re.compile(r"[0-9]{1,18}")
_BUDGETS = ("recall", "deep")


def _tokens(given: str) -> int | str:
    if _NUMBER.fullmatch(given) and int(given):
        return int(given)
    if given in _BUDGETS:
        return given
    raise typer.BadParameter(f"must be at least 1, or one of {', '.join(_BUDGETS)}")


QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="The question; - reads standard input.")
]


@scoped()
def recall(  # noqa: PLR0913 - one for each option
    query: QueryArgument,
    *,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="How many at most. Default: 10.")
    ] = None,
    memory_types: Annotated[
        list[MemoryType] | None,
        typer.Option("--type", help="Only this kind; give it once for each. Default: all."),
    ] = None,
    floor: Annotated[
        float | None,
        typer.Option("--floor", metavar="0..1", help="Nothing that scores less."),
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="With ids, and the parts that each score is made of.")
    ] = False,
    filters: FilterOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="With what each arm of the search found.")
    ] = False,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
    as_json: JsonOption = False,
    scope: Scope,
) -> None:
    """Find the memories that answer a question, best first, with reasons."""
    question = text_of(query, field="query")
    moment = moment_of(as_of, known_at)
    found = with_memory(
        lambda memory: memory.recall(
            question,
            scope=scope,
            limit=limit,
            memory_types=[one.value for one in memory_types] if memory_types else None,
            floor=floor,
            filters=None if filters is None else Filter.from_text(filters),
            explain=explain,
            **moment,
        )
    )
    if as_json:
        write_json(recall_json(found, query=question, scope=scope))
        return
    show_recall(found, scope=scope, why=why)
    if found.explanation is not None:
        show_explanation(found.explanation)


@scoped()
def context(
    query: QueryArgument,
    *,
    budget: Annotated[
        Any,
        typer.Option(
            "--budget",
            parser=_tokens,
            metavar="N|recall|deep",
            help="Tokens at most; recall is 1500, deep 4000. Default: 300.",
        ),
    ] = None,
    form: Annotated[
        ContextForm, typer.Option("--format", help="How it is written; the budget holds for that.")
    ] = ContextForm.MARKDOWN,
    as_of: AsOfOption = None,
    known_at: KnownAtOption = None,
    as_json: JsonOption = False,
    scope: Scope,
) -> None:
    """Print a prompt section about a question: whole items, within a token budget.

    Standard output holds the section alone, and nothing when nothing is known.
    """
    question = text_of(query, field="query")
    moment = moment_of(as_of, known_at)
    built = with_memory(
        lambda memory: memory.context(question, scope=scope, budget=budget, form=form, **moment)
    )
    if as_json:
        write_json(context_json(built))
        return
    if built.text:
        shown = printable(built.text) if is_terminal(sys.stdout) else built.text
        sys.stdout.write(f"{shown}\n")
    for reason in built.degraded:
        write_side(f"Incomplete: {reason}")
    if not built.text and not built.degraded:
        why = (
            "nothing fits the budget" if built.omitted else f"nothing to say in {described(scope)}"
        )
        write_side(f"Empty: {why}.")


def show_recall(found: Recall, *, scope: Scope, why: bool) -> None:
    """The hits as a table on a terminal, else a line each; then what to think of them."""
    if not found.hits:
        _show_nothing(found, scope)
        return
    if is_terminal(sys.stdout):
        result_console().print(_table(found.hits))
    else:
        for hit in found.hits:
            row = (f"{hit.score:.2f}", f"{hit.occurred_at:%Y-%m-%d %H:%M}", hit.kind)
            write_line("\t".join((*row, clipped(hit.text, TEXT_CHARS_MAX))))
    if why:
        for place, hit in enumerate(found.hits, start=1):
            write_line(f"{place}. {hit.id}  {_parts(hit)}")
    write_line(_verdict(found), style="dim")
    _show_shortfalls(found)


def _table(hits: tuple[Hit, ...]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("score", "when", "kind"):
        table.add_column(name, no_wrap=True)
    table.add_column("text", overflow="fold")
    for hit in hits:
        table.add_row(
            f"{hit.score:.2f}",
            f"{hit.occurred_at:%Y-%m-%d %H:%M}",
            hit.kind,
            Text(clipped(hit.text, TEXT_CHARS_MAX)),
        )
    return table


def _parts(hit: Hit) -> str:
    """What moved the score, and the hit's place in each arm of the search."""
    arms = [("nearest vectors", hit.near_place), ("best words", hit.words_place)]
    places = ", ".join(f"{place} among the {arm}" for arm, place in arms if place is not None)
    parts = " + ".join(
        f"{name} {value:.2f}"
        for name, value in hit.reasons._asdict().items()
        if name not in {"cosine", "nb", "pair", "lex"} and abs(value) >= 0.005  # noqa: PLR2004 - rounds to 0.00
    )
    said = "; ".join(hit.why) or "nothing in particular"
    return f"{said} | {hit.score:.3f} = {parts} | {places or 'found by neither arm alone'}"


def _verdict(found: Recall) -> str:
    sure = "low confidence" if found.low_confidence else "confidence"
    return (
        f"{sure} {found.confidence:.2f} · {found.returned} of at most {found.limit} · "
        f"{found.searched} searched · {found.took.total_seconds() * 1_000:.0f} ms"
    )


def _show_nothing(found: Recall, scope: Scope) -> None:
    write_line(f"Nothing found in {described(scope)}.")
    _show_shortfalls(found)
    if not found.searched and scope.level is not MemoryScope.SESSION:
        write_line("A scope sees itself and what is wider; for narrower ones add --project, say.")


def _show_shortfalls(found: Recall) -> None:
    if found.about_other_actor:
        write_line("Note: what was found is about somebody else than was asked for.")
    for note in found.notes:
        write_line(f"Note: {note}")
    for reason in found.degraded:
        write_side(f"Incomplete: {reason}")
