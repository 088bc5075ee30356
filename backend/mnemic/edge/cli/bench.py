"""`mnemic bench …`: what there is to measure, on servers of its own that are thrown away."""

from __future__ import annotations

import signal
import statistics
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mnemic.edge.cli.endings import FAILED
from mnemic.edge.cli.memory import waiting
from mnemic.edge.cli.options import JsonOption
from mnemic.edge.cli.progress import counting
from mnemic.edge.cli.writing import write_json, write_line
from mnemic.errors import InvalidInput

if TYPE_CHECKING:
    from mnemic.edge.cli.bench_ground import Ground
    from mnemic.edge.cli.bench_latency import Latency, Size
    from mnemic.edge.cli.bench_soak import Soak
    from mnemic.model.embedding import Embedder

__all__ = ["bench"]

bench = typer.Typer(no_args_is_help=True)

T = TypeVar("T")
RATIO_WANTED = 1.5
RATIO_DIGITS = 3
MILLISECOND_DIGITS = 4
MEBIBYTE = 1_048_576


@bench.command("latency")
def latency(
    *,
    rows: Annotated[
        int,
        typer.Option(min=4, max=10_000_000, help="Memories of other tenants in the database."),
    ] = 100_000,
    tenants: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Tenants that they belong to.")
    ] = 5_000,
    memories: Annotated[
        int, typer.Option(min=16, max=20_000, help="Memories of the scope that is asked.")
    ] = 1_000,
    rounds: Annotated[
        int, typer.Option(min=1, max=100, help="Rounds, of which the median counts.")
    ] = 5,
    calls: Annotated[
        int, typer.Option(min=2, max=100_000, help="Calls of each operation in a round.")
    ] = 400,
    as_json: JsonOption = False,
) -> None:
    """Time each operation beside the bare driver doing the same, call by call in turns.

    On PostgreSQL and Valkey of its own, durable as in production, which are gone afterwards; no
    server that is set is touched. A ratio is the median over the rounds of p95 by p95.
    """
    from mnemic.edge.cli.bench_latency import Size

    size = Size(rows=rows, tenants=tenants, memories=memories, rounds=rounds, calls=calls)
    results = _run(_measured(size))
    if as_json:
        write_json(_latency_document(results, size))
    else:
        _show_latency(results, size)


@bench.command("soak")
def soak(
    *,
    operations: Annotated[
        int, typer.Option(min=0, max=1_000_000_000, help="Operations of working memory.")
    ] = 1_000_000,
    recalls: Annotated[int, typer.Option(min=0, max=100_000_000, help="Recalls.")] = 100_000,
    as_json: JsonOption = False,
) -> None:
    """Serve for long, and see whether memory, descriptors or connections grow.

    On servers of its own, which are gone afterwards; no server that is set is touched. Exits with 1
    if something grew.
    """
    done = _run(_soaked(operations, recalls))
    if as_json:
        write_json(_soak_document(done))
    else:
        _show_soak(done)
    if not done.is_flat:
        raise typer.Exit(FAILED)


@bench.command("retrieval")
def retrieval(
    *,
    data: Annotated[
        Path, typer.Option("--data", help="A folder of LoCoMo's JSON files, or one of them.")
    ],
    together: Annotated[
        bool, typer.Option("--together", help="All conversations in one project, so a larger one.")
    ] = False,
    ablate: Annotated[
        bool,
        typer.Option("--ablate", help="Instead: the score with each of its parts turned off."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask questions whose answers are known, and count how often they are found.

    Each conversation is loaded into a project of its own, through the public calls, on servers of
    its own, which are gone afterwards. Vectors alone, BM25 alone and their fusion stand beside.
    What is larger than recall.exact_scan_rows_max gets an index, and is compared with the exact.
    Questions of one conversation are asked of another too, to see how sure recall is of those.
    With --ablate every turn is scored in memory, on two halves of the conversations.
    """
    from mnemic.edge.cli import bench_ablation, bench_retrieval
    from mnemic.edge.cli.bench_retrieval_command import ablated, retrieved

    show: Callable[[dict[str, Any]], None]
    if ablate:
        show, document = bench_ablation.show, _run(_ended(ablated(data)))
    else:
        show, document = bench_retrieval.show, _run(_ended(retrieved(data, together=together)))
    if as_json:
        write_json(document)
    else:
        show(document)


@bench.command("scale")
def scale(
    *,
    rows: Annotated[
        list[int],
        typer.Option(min=10, max=10_000_000, help="Turns of a tenant; once for each size."),
    ] = [1_000, 10_000, 100_000],  # noqa: B006 - typer wants a list, and copies it
    tenants: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Small tenants in the same database.")
    ] = 5_000,
    questions: Annotated[
        int, typer.Option(min=1, max=100_000, help="Questions to tenants of each size.")
    ] = 200,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers", help="LangGraph's store and mem0 beside, where they are installed."
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Instead: conversations in LoCoMo's form, in one scope of as many turns as the "
            "largest of --rows.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask tenants of every size for their nearest turns, beside the bare driver.

    They all stand in one database, on servers of its own, which are gone afterwards. With --data
    the answers to known questions are looked for in a crowd.
    """
    from mnemic.edge.cli import bench_crowd, bench_scale
    from mnemic.edge.cli.bench_scale_command import Asking, crowded, scaled

    size = bench_scale.Size(rows=tuple(rows), tenants=tenants, questions=questions)
    show: Callable[[dict[str, Any]], None]
    if data is None:
        show, document = bench_scale.show, _run(_ended(scaled(Asking(size=size, peers=peers))))
    else:
        show, document = bench_crowd.show, _run(_ended(crowded(data, max(rows))))
    if as_json:
        write_json(document)
    else:
        show(document)


async def _ended(work: Coroutine[Any, Any, T]) -> T:
    _end_on_sigterm()
    return await work


def _run(work: Coroutine[Any, Any, T]) -> T:
    """What the work gives; whoever ends it with SIGTERM finds no server left behind either."""
    import asyncio

    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _end_on_sigterm() -> None:
    import asyncio

    if (task := asyncio.current_task()) is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


@asynccontextmanager
async def _started(embedder: Embedder | None = None) -> AsyncIterator[Ground]:
    from mnemic.edge.cli.bench_ground import ground

    _end_on_sigterm()
    async with AsyncExitStack() as servers:
        with waiting("Starting PostgreSQL and Valkey"):
            made = await servers.enter_async_context(ground(embedder))
        yield made


async def _measured(size: Size) -> tuple[Latency, ...]:
    from mnemic.edge.cli.bench_ground import fill_scope
    from mnemic.edge.cli.bench_latency import SCOPE, calls_of, measure
    from mnemic.embed import open_embedder
    from mnemic.settings import EmbeddingSettings
    from mnemic.store.measuring.filling import FILL_STEPS, MEMORIES_A_TENANT_MIN, fill, settle

    if size.rows < size.tenants * MEMORIES_A_TENANT_MIN:
        raise InvalidInput(
            f"--rows must be at least {size.tenants * MEMORIES_A_TENANT_MIN}, "
            f"{MEMORIES_A_TENANT_MIN} for each of the --tenants; give more rows or fewer tenants",
            field="rows",
        )
    async with _started(open_embedder(EmbeddingSettings())) as made:
        with counting("Filling the database", len(FILL_STEPS)) as advance:
            model = await made.tools.live_model()
            await fill(
                made.admin_url,
                rows=size.rows,
                tenants=size.tenants,
                model=model.id,
                dimensions=made.tools.embedder.signature.dimensions,
                progress=advance,
            )
        with waiting("Filling the scope"):
            await fill_scope(made.tools, SCOPE, size.memories)
            await settle(made.admin_url)
        with counting("Measuring", calls_of(size)) as advance:
            return await measure(made, size, progress=advance)


async def _soaked(operations: int, recalls: int) -> Soak:
    from mnemic.edge.cli.bench_soak import STEPS, soak

    async with _started() as made:
        with counting("Soaking", STEPS) as advance:
            return await soak(made, operations=operations, recalls=recalls, progress=advance)


def _latency_document(results: tuple[Latency, ...], size: Size) -> dict[str, Any]:
    from mnemic.edge.cli.bench_latency import OPERATIONS

    return {
        "ratios": {
            one.name: round(one.ratio, RATIO_DIGITS) for one in results if one.name in OPERATIONS
        },
        "rows": size.rows + size.memories,
        "tenants": size.tenants + 1,
        "memories": size.memories,
        "rounds": size.rounds,
        "calls": size.calls,
        "operations": [_operation_document(one) for one in results],
    }


def _operation_document(one: Latency) -> dict[str, Any]:
    document: dict[str, Any] = {"name": one.name, "ours_ms": _percentiles(one.ours)}
    if one.is_compared:
        document["bare_ms"] = _percentiles(one.bare)
        document["ratio"] = round(one.ratio, RATIO_DIGITS)
        document["ratios"] = [round(ratio, RATIO_DIGITS) for ratio in one.ratios]
    return document


def _percentiles(rounds: tuple[tuple[float, ...], ...]) -> dict[str, float]:
    from mnemic.edge.cli.bench_latency import p95

    seconds = [one for took in rounds for one in took]
    found = {"p50": statistics.median(seconds), "p95": p95(seconds)}
    return {name: round(value * 1_000, MILLISECOND_DIGITS) for name, value in found.items()}


def _show_latency(results: tuple[Latency, ...], size: Size) -> None:
    from mnemic.edge.cli.bench_latency import SCORED_MAX

    write_line(
        f"{size.memories:,} memories in the scope, {size.rows + size.memories:,} of "
        f"{size.tenants + 1:,} tenants in the database; {size.rounds} rounds"
    )
    write_line(f"{'':<23}{'ours p50':>10}{'p95':>9}{'bare p50':>11}{'p95':>9}{'ratio':>8}")
    for one in results:
        ours = _percentiles(one.ours)
        line = f"{one.name:<23}{ours['p50']:>10.3f}{ours['p95']:>9.3f}"
        if one.is_compared:
            bare = _percentiles(one.bare)
            line += f"{bare['p50']:>11.3f}{bare['p95']:>9.3f}{one.ratio:>8.2f}"
        write_line(line)
    write_line(
        f"Milliseconds; a ratio is the median of the rounds' p95 by p95 (at most {RATIO_WANTED} is "
        "wanted of the first five); "
        f"scoring is that of up to {SCORED_MAX} candidates."
    )


def _soak_document(done: Soak) -> dict[str, Any]:
    return {
        "flat": done.is_flat,
        "operations": done.operations,
        "recalls": done.recalls,
        "seconds": round(done.seconds, 1),
        "growth": {
            name: {
                "first": growth.first,
                "last": growth.last,
                "gained": round(growth.gained, 2),
                "limit": growth.limit,
                "flat": growth.is_flat,
            }
            for name, growth in done.growths.items()
        },
        "samples": [[one.rss, one.descriptors, one.postgres, one.valkey] for one in done.samples],
    }


def _show_soak(done: Soak) -> None:
    write_line(
        f"{done.operations:,} operations and {done.recalls:,} recalls in {done.seconds:,.0f} s; "
        "growth after warming up:"
    )
    for name, growth in done.growths.items():
        part, unit = (MEBIBYTE, " MiB") if name == "rss" else (1, "")
        write_line(
            f"  {name:<12}{growth.first / part:>8.1f} to {growth.last / part:.1f}{unit}, gained "
            f"{growth.gained / part:.2f} of at most {growth.limit / part:g}: "
            f"{'flat' if growth.is_flat else 'GROWN'}"
        )
