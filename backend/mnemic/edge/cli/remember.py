"""`mnemic remember`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mnemic.edge.cli.memory import text_of, with_memory
from mnemic.edge.cli.options import JsonOption, MemoryType
from mnemic.edge.cli.scopes import described, scoped
from mnemic.edge.cli.writing import write_json, write_line
from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.model.receipt import Receipt

__all__ = ["remember"]


@scoped()
def remember(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What to remember; - reads standard input.")
    ],
    *,
    memory_type: Annotated[
        MemoryType, typer.Option("--type", help="What kind of memory it is.")
    ] = MemoryType.SEMANTIC,
    importance: Annotated[
        float | None, typer.Option("--importance", metavar="0..1", help="How much it matters.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Idempotency key: the same key never writes twice."),
    ] = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag; give it once for each.")
    ] = None,
    as_json: JsonOption = False,
    scope: Scope,
) -> None:
    """Keep a statement, an experience or a way of doing something.

    semantic: what is true; equal knowledge is reinforced. episodic: what happened. procedural: a
    name on the first line, then numbered or bulleted steps.
    """
    content = text_of(text, field="text")
    receipt = with_memory(
        lambda memory: memory.remember(
            content,
            scope=scope,
            memory_type=memory_type.value,
            importance=importance,
            idempotency_key=key,
            tags=tags or (),
        )
    )
    if as_json:
        write_json(receipt.to_json())
        return
    for line in _told(receipt, scope):
        write_line(line)


def _told(receipt: Receipt, scope: Scope) -> list[str]:
    from mnemic.model.receipt import VectorState

    done = "Remembered" if receipt.created else "Known already, reinforced"
    lines = [
        f"{done}: {receipt.kind} {receipt.id} (version {receipt.version}) in {described(scope)}"
    ]
    lines += [f"  and {receipt.kind} {other}" for other in receipt.also]
    lines += [f"  {note}" for note in receipt.notes]
    if receipt.vector is VectorState.PENDING:
        lines.append("  The embedder is away: until it is back, only its words find this.")
    return lines
