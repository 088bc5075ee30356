"""`mnemic demo`: the main job, from nothing, on real servers."""

from __future__ import annotations

import shlex
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mnemic.edge.cli.documents import context_json, ingest_json, recall_json, scope_json
from mnemic.edge.cli.examples import CONVERSATION, example, questions
from mnemic.edge.cli.ingest import command_name, run_ingest
from mnemic.edge.cli.memory import waiting
from mnemic.edge.cli.options import JsonOption
from mnemic.edge.cli.progress import counting
from mnemic.edge.cli.scopes import described, options_of
from mnemic.edge.cli.writing import clipped, write_json, write_line
from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.embedded import EmbeddedServers
    from mnemic.manager import MemoryManager
    from mnemic.model.recall import Hit
    from mnemic.settings import MemorySettings
    from mnemic.wiring import Servers

__all__ = ["demo"]

SCOPE = Scope.user("demo").project("ledger")
QUESTIONS_SHOWN = 4
HITS_SHOWN = 2
TEXT_CHARS_MAX = 150
FACTS = (
    ("deploys", "frozen_on", "Friday", "Deploys are frozen on Fridays."),
    ("ledger", "uses_database", "PostgreSQL", "The ledger keeps its data in PostgreSQL."),
    ("user", "prefers", "bullet points", "The user prefers bullet points over paragraphs."),
)


@dataclass(slots=True)
class _Tour:
    """What the demo has shown so far, told step by step unless it ends as one document."""

    quiet: bool
    document: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - started

    def head(self, step: str, words: str) -> None:
        """A step is done; how long it took."""
        self.line()
        place = list(self.seconds).index(step) + 1
        self.line(f"{place}. {words} ({self.seconds[step]:.1f} s)", style="bold")

    def line(self, text: str = "", *, style: str | None = None) -> None:
        if not self.quiet:
            write_line(text, style=style)


def demo(*, as_json: JsonOption = False) -> None:
    """Set up everything and show the main job: ingest, episodes, facts, recall, a prompt section.

    It may be run any number of times: it remembers for the user `demo`, and adds nothing twice.
    """
    import asyncio

    tour = _Tour(quiet=as_json)
    asyncio.run(_run(tour))
    if as_json:
        tour.document["seconds"] = {step: round(s, 3) for step, s in tour.seconds.items()}
        write_json(tour.document)


async def _run(tour: _Tour) -> None:
    with tour.timed("servers"), waiting("Starting PostgreSQL and Valkey"):
        from mnemic.manager import MemoryManager
        from mnemic.settings_reading import read_settings
        from mnemic.wiring import resolve_servers

        settings = read_settings()
        servers = await resolve_servers(settings, migrate=False)
    try:
        _show_servers(tour, settings, servers)
        await _migrate(tour, servers)
        async with _opened(tour, MemoryManager.open(settings)) as memory:
            await _converse(tour, memory)
            await _state_facts(tour, memory)
            await _show_tiers(tour, memory)
            await _ask(tour, memory)
            await _build_section(tour, memory)
        _show_next(tour, servers)
    finally:
        await servers.close()


@asynccontextmanager
async def _opened(tour: _Tour, memory: MemoryManager) -> AsyncIterator[MemoryManager]:
    with tour.timed("schema"):
        await memory.start()
    try:
        yield memory
    finally:
        await memory.close()


def _show_servers(tour: _Tour, settings: MemorySettings, servers: Servers) -> None:
    folder = settings.embedded.data_dir
    if servers.started is None:
        where = "as set in MEM_DATABASE_URL and MEM_REDIS_URL"
    elif not servers.embeds_database:
        where = f"PostgreSQL as set in MEM_DATABASE_URL, Valkey embedded, in {folder}"
    elif settings.redis_url is not None:
        where = f"Valkey as set in MEM_REDIS_URL, PostgreSQL embedded, in {folder}"
    else:
        where = f"embedded, in {folder}"
    tour.document |= {"scope": scope_json(SCOPE), "embedded": servers.embeds_database}
    tour.line(f"Mnemic demo, in the memory of {described(SCOPE)}", style="bold")
    tour.head("servers", f"PostgreSQL and Valkey are up: {where}")


async def _migrate(tour: _Tour, servers: Servers) -> None:
    """The schema is this release's; the manager refuses to serve what nobody may bring there."""
    import asyncio

    from mnemic.edge.cli.db import prepare
    from mnemic.store.upgrade import Step, upgrade

    if servers.owner_url is None:
        return
    with tour.timed("schema"):
        await prepare(servers)
        with counting("Upgrading the schema", 1) as advance:

            def report(step: Step) -> None:
                advance(1, step.total)

            stands = await asyncio.to_thread(upgrade, servers.owner_url, progress=report)
    tour.document["revision"] = stands.current
    tour.head("schema", f"Roles and schema are there: revision {stands.current}, with row security")


async def _converse(tour: _Tour, memory: MemoryManager) -> None:
    from mnemic.edge.cli.transcripts import TranscriptFile
    from mnemic.model.transcript import Bounds

    path = example(CONVERSATION)
    file = TranscriptFile(str(path), form=None, name=None, bounds=Bounds())
    with tour.timed("ingest"):
        report = await run_ingest(memory, file, file.survey(), scope=SCOPE, keep_open=False)
    file.close()
    tour.document["ingest"] = ingest_json(report)
    tour.head(
        "ingest",
        f"{path.name}: {len(report.sessions)} sessions, {report.turns_added} turns added, "
        f"{report.turns_known} already there",
    )
    tour.line("   Each session has ended and stands as an episode:")
    for session in report.sessions:
        tour.line(f"   - {session.name}: {clipped(session.title or '', TEXT_CHARS_MAX)}")


async def _state_facts(tour: _Tour, memory: MemoryManager) -> None:
    from mnemic.model.fact import FactCreate

    with tour.timed("facts"):
        receipts = [
            await memory.store_fact(
                FactCreate(subject=subject, predicate=predicate, object=thing, content=sentence),
                scope=SCOPE,
                idempotency_key=f"demo;{subject};{predicate}",
            )
            for subject, predicate, thing, sentence in FACTS
        ]
    tour.document["facts"] = [
        {"id": receipt.id, "content": sentence}
        for receipt, (*_, sentence) in zip(receipts, FACTS, strict=True)
    ]
    tour.head("facts", f"{len(FACTS)} facts are stored, beside what was said")
    for subject, predicate, thing, _ in FACTS:
        tour.line(f"   - {subject} / {predicate} / {thing}")


async def _show_tiers(tour: _Tour, memory: MemoryManager) -> None:
    from mnemic.edge.cli.demo_tiers import show_tiers

    with tour.timed("tiers"):
        shown = await show_tiers(memory, SCOPE)
    tour.document["tiers"] = {tier.name: tier.values for tier in shown}
    tour.head("tiers", "The four tiers, by the methods of the plan")
    for tier in shown:
        tour.line(f"   {tier.name}: {clipped(tier.line, TEXT_CHARS_MAX)}")


async def _ask(tour: _Tour, memory: MemoryManager) -> None:
    asked = questions(QUESTIONS_SHOWN)
    with tour.timed("recall"):
        answers = [
            await memory.recall(question, scope=SCOPE, limit=HITS_SHOWN) for question in asked
        ]
    tour.document["recall"] = [
        recall_json(found, query=question, scope=SCOPE)
        for question, found in zip(asked, answers, strict=True)
    ]
    tour.head("recall", f"{len(asked)} questions, the best {HITS_SHOWN} memories for each")
    for question, found in zip(asked, answers, strict=True):
        milliseconds = found.took.total_seconds() * 1_000
        tour.line(f"   {question}  (confidence {found.confidence:.2f}, {milliseconds:.0f} ms)")
        for hit in found.hits:
            _show_hit(tour, hit)


def _show_hit(tour: _Tour, hit: Hit) -> None:
    tour.line(
        f"     {hit.score:.2f}  {hit.occurred_at:%Y-%m-%d}  {hit.kind}: "
        f"{clipped(hit.text, TEXT_CHARS_MAX)}"
    )
    tour.line(f"           because: {'; '.join(hit.why)}", style="dim")


async def _build_section(tour: _Tour, memory: MemoryManager) -> None:
    question = questions(1)[0]
    with tour.timed("context"):
        built = await memory.context(question, scope=SCOPE)
    tour.document["context"] = {"query": question, **context_json(built)}
    tour.head(
        "context",
        f"A prompt section for “{question}”: {built.tokens} of at most {built.budget} tokens",
    )
    for line in built.text.splitlines():
        tour.line(f"   | {line}")


def _show_next(tour: _Tour, servers: Servers) -> None:
    options = f"{shlex.quote(command_name())} {{}} {options_of(SCOPE)}"
    again = questions(QUESTIONS_SHOWN + 3)[-1]
    holding = servers.started if servers.embeds_database else None
    tour.document["data_dir"] = str(holding.data_dir) if holding else None
    tour.line()
    tour.line("What to try next:", style="bold")
    for command in (
        f"{options.format('recall')} --why {shlex.quote(again)}",
        f"{options.format('remember')} {shlex.quote('The on-call rota changes on Mondays')}",
        f"{options.format('context')} {shlex.quote('Who is on call?')}",
        f"{shlex.quote(command_name())} ingest {shlex.quote(str(example('transcript.txt')))}",
        f"{shlex.quote(command_name())} doctor",
    ):
        tour.line(f"   {command}")
    if holding is not None:
        tour.line(f"The data lies in {_data_folders(holding)}.")
    tour.line(f"All of it took {sum(tour.seconds.values()):.1f} s.")


def _data_folders(started: EmbeddedServers) -> str:
    from mnemic.embedded.layout import home_of

    home = home_of(started.data_dir)
    if home.is_relative_to(started.data_dir):
        return str(started.data_dir)
    return f"{started.data_dir} and {home}"
