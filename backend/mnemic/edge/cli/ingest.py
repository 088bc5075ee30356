"""`mnemic ingest`."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemic.edge.cli.documents import ingest_json
from mnemic.edge.cli.endings import FAILED, INVALID
from mnemic.edge.cli.memory import waiting, with_memory
from mnemic.edge.cli.options import JsonOption
from mnemic.edge.cli.progress import counting
from mnemic.edge.cli.scopes import options_of, scoped
from mnemic.edge.cli.writing import clipped, counted, write_json, write_line, write_side
from mnemic.errors import InvalidInput, Unavailable
from mnemic.model.scope import Scope

if TYPE_CHECKING:
    from mnemic.edge.cli.transcripts import Survey, TranscriptFile
    from mnemic.manager import MemoryManager
    from mnemic.service.ingest import IngestReport

__all__ = ["command_name", "ingest", "run_ingest"]

BAD_LINES_SHOWN_MAX = 20
HINTS_MAX = 3
NAME_CHARS_MAX = 40


class FormatName(StrEnum):
    """How a file is read."""

    AUTO = "auto"
    NDJSON = "ndjson"
    LOCOMO = "locomo"
    PLAIN = "plain"


@dataclass(slots=True)
class _Job:
    """A file, what is in it, and what became of it."""

    file: TranscriptFile
    survey: Survey
    report: IngestReport | None = None


@scoped(session=False)
def ingest(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Transcripts; - is standard input.")
    ],
    *,
    form: Annotated[
        FormatName, typer.Option("--format", help="What the files are.")
    ] = FormatName.AUTO,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The session of text that names none. Default: the file's."),
    ] = None,
    keep_open: Annotated[
        bool, typer.Option("--keep-open", help="Leave the sessions active.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Write nothing if a line is bad, and exit with 1.")
    ] = False,
    as_json: JsonOption = False,
    scope: Scope,
) -> None:
    """Read conversations from files: turns, facts, and an episode for each session.

    Bad lines are reported by number and the rest is kept. A second run adds nothing; one that was
    killed is completed by the next.
    """
    jobs = _surveyed(files, form, name)
    try:
        _report_bad_lines(jobs)
        refused = strict and any(job.survey.bad_line_count for job in jobs)
        readable = [job for job in jobs if job.survey.is_readable]
        if readable and not refused:
            with_memory(lambda memory: _ingest_all(memory, readable, scope, keep_open=keep_open))
    finally:
        _close(jobs)
    if as_json:
        write_json({"files": [_document(job) for job in jobs]})
    else:
        _show(jobs, scope)
        if refused:
            write_side("Nothing was written (--strict): correct the bad lines first.")
    _leave(jobs, strict=strict)


async def run_ingest(
    memory: MemoryManager, file: TranscriptFile, survey: Survey, *, scope: Scope, keep_open: bool
) -> IngestReport:
    """The file stands in memory; its bad lines have been told already."""
    from mnemic.model.transcript import BadLine

    entries = (entry for entry in file.entries() if not isinstance(entry, BadLine))
    steps = survey.steps - (len(survey.sessions) if keep_open else 0)
    with counting(f"Ingesting {clipped(Path(file.label).name, NAME_CHARS_MAX)}", steps) as advance:
        return await memory.transcripts.ingest(
            entries,
            scope=scope,
            keep_open=keep_open,
            progress=lambda _kind, count: advance(count),
        )


def command_name() -> str:
    """How this program is called from here: by its name if that finds it, else by its path."""
    return "mnemic" if shutil.which("mnemic") else sys.argv[0]


def _surveyed(files: list[str], form: FormatName, name: str | None) -> list[_Job]:
    with waiting("Reading"):
        from mnemic.edge.cli.transcripts import Survey, TranscriptFile
        from mnemic.model.transcript import Bounds, Format
        from mnemic.settings_reading import read_settings

        limits = read_settings(warns=False).limits  # opening memory tells
        bounds = Bounds(
            text_chars_max=limits.text_chars_max,
            metadata_bytes_max=limits.metadata_bytes_max,
            tags_max=limits.tags_max,
        )
        if files.count("-") > 1:
            raise InvalidInput("standard input can be read only once", field="files")
        told = None if form is FormatName.AUTO else Format(form.value)
        jobs: list[_Job] = []
        try:
            for one in files:
                file = TranscriptFile(one, form=told, name=name, bounds=bounds)
                jobs.append(_Job(file, Survey()))
                jobs[-1].survey = file.survey()
        except BaseException:
            _close(jobs)
            raise
        return jobs


def _close(jobs: list[_Job]) -> None:
    for job in jobs:
        job.file.close()


async def _ingest_all(
    memory: MemoryManager, jobs: list[_Job], scope: Scope, *, keep_open: bool
) -> None:
    for job in jobs:
        try:
            job.report = await run_ingest(
                memory, job.file, job.survey, scope=scope, keep_open=keep_open
            )
        except Unavailable:
            write_side("What was begun is kept; the same command, run again, completes it.")
            raise


def _report_bad_lines(jobs: list[_Job]) -> None:
    for job in jobs:
        bad = job.survey.bad_lines
        for line in bad[:BAD_LINES_SHOWN_MAX]:
            write_side(f"{job.file.label}:{line.number}: {line.reason}")
        if (rest := job.survey.bad_line_count - BAD_LINES_SHOWN_MAX) > 0:
            write_side(f"{job.file.label}: {rest} more bad lines; --json lists the first 1,000")


def _document(job: _Job) -> dict[str, Any]:
    bad = [{"line": one.number, "reason": one.reason} for one in job.survey.bad_lines]
    done = ingest_json(job.report) if job.report else None
    return {
        "file": job.file.label,
        "bad_line_count": job.survey.bad_line_count,
        "bad_lines": bad,
        "ingested": done,
    }


def _show(jobs: list[_Job], scope: Scope) -> None:
    places: dict[Scope, None] = {}
    for job in jobs:
        if job.report is None:
            if not job.survey.is_readable:
                write_side(f"{job.file.label}: nothing could be read")
            continue
        _show_report(job, job.report)
        places |= dict.fromkeys(one.scope.parent or scope for one in job.report.sessions)
    for place in list(places)[:HINTS_MAX]:
        options = options_of(place)
        write_line(f"Ask it: {command_name()} recall {options}{options and ' '}'QUESTION'")


def _show_report(job: _Job, report: IngestReport) -> None:
    write_line(
        f"{job.file.label}: {counted(len(report.sessions), 'session')} · "
        f"{counted(report.turns_added, 'turn')} added, {report.turns_known} already there · "
        f"{counted(report.episodes_created, 'new episode')} · "
        f"{counted(report.facts_added, 'fact')} added, {report.facts_known} already there · "
        f"{counted(job.survey.bad_line_count, 'bad line')}"
    )
    for session in report.sessions:
        state = clipped(session.title, 100) if session.title else "(active)"
        turns = session.turns_added + session.turns_known
        write_line(f"  {clipped(session.name, NAME_CHARS_MAX)}  {counted(turns, 'turn')}  {state}")
        if session.turns_left_out:
            write_side(
                f"{job.file.label}: session {session.name} has ended, so "
                f"{counted(session.turns_left_out, 'new turn')} stayed out; put what is new into a "
                "session of another name"
            )
    for problem in report.problems:
        place = f":{problem.line}" if problem.line else ""
        within = f" session {problem.session}:" if problem.session else ""
        write_side(f"{job.file.label}{place}:{within} {problem.reason}")


def _leave(jobs: list[_Job], *, strict: bool) -> None:
    if not all(job.survey.is_readable for job in jobs):
        raise typer.Exit(INVALID)
    if strict and any(
        job.survey.bad_line_count
        or (job.report and (job.report.problems or job.report.turns_left_out))
        for job in jobs
    ):
        raise typer.Exit(FAILED)
