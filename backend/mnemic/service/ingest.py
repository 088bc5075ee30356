"""Put what a transcript holds into memory: turns into sessions, facts beside them, then the ends.

Everything is named by the transcript itself, so a run that was killed is finished by the next one,
and a run over what is there already adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from mnemic.errors import Conflict, InvalidInput, NotFound, OutcomeUnknown, Unavailable
from mnemic.model.episode import Outcome
from mnemic.model.receipt import Receipt
from mnemic.model.scope import MemoryScope, Scope
from mnemic.model.session import SessionState
from mnemic.model.transcript import BadLine, Entry, SessionInfo, StatedFact, Utterance
from mnemic.service.end_session import end_session
from mnemic.service.ingest_input import (
    FACT_KEY,
    Progress,
    check_names,
    checked_entries,
    checked_progress,
)
from mnemic.service.memory_input import parse_fact
from mnemic.service.parsing import checked_flag, checked_outcome, checked_scope, checked_turn
from mnemic.service.record_fact import facts_request, record_facts
from mnemic.service.tools import Tools
from mnemic.service.transcribe import append_turns
from mnemic.store.turns import content_digest, external_digest

__all__ = ["IngestProblem", "IngestReport", "IngestedSession", "Progress", "ingest"]

TURNS_AT_ONCE = 256
PROBLEMS_MAX = 1_000
EDITED = "the turn is kept with another text; give the new text an id of its own"
_TITLES_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestProblem:
    """What could not be kept: the line it stands on (if one is to blame), and why."""

    line: int | None
    session: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedSession:
    """A session of the transcript: where it stands, and what became of its turns.

    `turns_left_out` are new ones that came after its end. `episode_created` is false when the
    session had ended before this run; without an episode the session goes on.
    """

    name: str
    scope: Scope
    turns_added: int
    turns_known: int
    turns_left_out: int
    episode_id: UUID | None
    episode_created: bool
    title: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What a run did, session by session in the order of the transcript.

    `problems` are the first `PROBLEMS_MAX`; `problem_count` counts them all.
    """

    sessions: tuple[IngestedSession, ...] = ()
    facts_added: int = 0
    facts_known: int = 0
    problems: tuple[IngestProblem, ...] = ()
    problem_count: int = 0

    @property
    def turns_added(self) -> int:
        """Turns that were new."""
        return sum(session.turns_added for session in self.sessions)

    @property
    def turns_known(self) -> int:
        """Turns that were there already."""
        return sum(session.turns_known for session in self.sessions)

    @property
    def turns_left_out(self) -> int:
        """Turns that were new, of sessions that had ended."""
        return sum(session.turns_left_out for session in self.sessions)

    @property
    def episodes_created(self) -> int:
        """Sessions that this run ended."""
        return sum(session.episode_created for session in self.sessions)


async def ingest(
    tools: Tools,
    entries: Iterable[Entry],
    *,
    scope: Scope,
    keep_open: bool = False,
    progress: Progress | None = None,
) -> IngestReport:
    """Every entry stands in memory, and every session has ended (unless `keep_open`).

    A session stands below `scope`, in the project the transcript names if `scope` names none; a
    fact stands where its session's memories stand once it has ended. Turns and facts that are
    there already are not added again. What cannot be held is a problem of the report, and the
    rest is kept; a `BadLine` is one. Raises `InvalidInput` if `scope` names a session, and
    `Unavailable` (`OutcomeUnknown` once something stands): the same call completes what was begun.
    """
    if checked_scope(scope).level is MemoryScope.SESSION:
        raise InvalidInput("must not name a session: the transcript names its own", field="scope")
    checked_flag(keep_open, field="keep_open")
    run = _Run(tools, scope, checked_progress(progress))
    try:
        for entry in checked_entries(entries):
            await run.take(entry)
        await run.flush()
        if not keep_open:
            for session in run.sessions.values():
                await run.end(session)
        await run.name_episodes()
    except Unavailable as fault:
        if isinstance(fault, OutcomeUnknown) or not run.has_landed:
            raise
        raise OutcomeUnknown(
            "A part of the transcript stands in memory; the same call completes it.",
            reason=str(fault),
        ) from fault
    return run.report()


@dataclass(slots=True)
class _Session:
    scope: Scope
    outcome: Outcome | None
    waiting: list[Utterance] = field(default_factory=list)
    added: int = 0
    known: int = 0
    left_out: int = 0
    episode: Receipt | None = None
    title: str | None = None


class _Run:
    """What is known on the way through a transcript; at most `TURNS_AT_ONCE` turns are held."""

    def __init__(self, tools: Tools, base: Scope, progress: Progress) -> None:
        self._tools = tools
        self._base = base
        self._progress = progress
        self._at_once = min(TURNS_AT_ONCE, tools.settings.limits.batch_max)
        self._waiting = 0
        self._outcomes: dict[tuple[str, str | None], Outcome | None] = {}
        self._projects: dict[str, str | None] = {}
        self._facts_added = self._facts_known = 0
        self._problems: list[IngestProblem] = []
        self._problem_count = 0
        self.sessions: dict[Scope, _Session] = {}

    @property
    def has_landed(self) -> bool:
        """Whether this run has changed anything so far."""
        sessions = self.sessions.values()
        return self._facts_added > 0 or any(one.added or one.episode for one in sessions)

    async def take(self, entry: object) -> None:
        """The entry is kept, or waits for the next flush."""
        if isinstance(entry, BadLine):
            self._problem(entry.number, None, entry.reason)
            return
        if not isinstance(entry, (Utterance, StatedFact, SessionInfo)):
            kind = type(entry).__name__
            self._problem(None, None, f"entries: must be entries of a transcript, not {kind}")
            return
        try:
            check_names(entry)
            if isinstance(entry, Utterance):
                checked_turn(entry.turn, self._tools.settings.limits)
        except InvalidInput as refused:
            self._problem(entry.line, None, str(refused))
            return
        if isinstance(entry, Utterance):
            await self._utterance(entry)
        elif isinstance(entry, StatedFact):
            await self._fact(entry)
        else:
            self._outcomes[entry.name, entry.project] = checked_outcome(entry.outcome)
            self._projects[entry.name] = entry.project

    async def flush(self) -> None:
        """No turn waits any more."""
        for session in self.sessions.values():
            turns, session.waiting = session.waiting, []
            if turns:
                await self._append(session, turns)
                self._progress("turn", len(turns))
        self._waiting = 0

    async def end(self, session: _Session) -> None:
        """The session has its episode; one that is still written to is left open."""
        try:
            session.episode = await end_session(
                self._tools, scope=session.scope, outcome=session.outcome
            )
        except NotFound:
            pass  # none of its turns could be held, so it never began
        except Conflict as refused:
            self._problem(None, session.scope.name, str(refused))
        self._progress("session", 1)

    async def name_episodes(self) -> None:
        """The title of each episode is known."""
        made = [session for session in self.sessions.values() if session.episode]
        titles: dict[UUID, str] = {}
        for parent in dict.fromkeys(_above(session.scope) for session in made):
            ids = [s.episode.id for s in made if s.episode and _above(s.scope) == parent]
            for first in range(0, len(ids), _TITLES_AT_ONCE):
                titles |= await self._titles(parent, ids[first : first + _TITLES_AT_ONCE])
        for session in made:
            session.title = titles.get(session.episode.id) if session.episode else None

    async def _titles(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, str]:
        episodes = await self._tools.transact(
            scope.tenant.id, lambda unit: unit.episodes.by_ids(scope, ids), read_only=True
        )
        return {episode.id: episode.title for episode in episodes}

    def report(self) -> IngestReport:
        """What was done."""
        return IngestReport(
            sessions=tuple(map(_ingested, self.sessions.values())),
            facts_added=self._facts_added,
            facts_known=self._facts_known,
            problems=tuple(self._problems),
            problem_count=self._problem_count,
        )

    async def _utterance(self, entry: Utterance) -> None:
        scope = self._place(entry.project).session(entry.session)
        session = self.sessions.get(scope)
        if session is None:
            outcome = self._outcomes.get((entry.session, entry.project))
            session = self.sessions[scope] = _Session(scope, outcome)
        session.waiting.append(entry)
        self._waiting += 1
        if self._waiting >= self._at_once:
            await self.flush()

    async def _append(self, session: _Session, turns: Sequence[Utterance]) -> None:
        """The turns stand in the session; if one cannot be held, the others do all the same."""
        try:
            receipts = await append_turns(
                self._tools, [one.turn for one in turns], scope=session.scope
            )
        except Conflict as refused:
            await self._sort_out(session, turns, refused)
        except InvalidInput as refused:
            if len(turns) == 1:
                self._problem(turns[0].line, session.scope.name, str(refused))
                return
            for one in turns:
                await self._append(session, [one])
        else:
            added = sum(receipt.created for receipt in receipts)
            session.added += added
            session.known += len(receipts) - added

    async def _sort_out(
        self, session: _Session, turns: Sequence[Utterance], refused: Conflict
    ) -> None:
        """None were added: a name stands for another text already, or the session has ended."""
        marks = [external_digest(one.turn.external_id or "") for one in turns]

        known = await self._tools.transact(
            session.scope.tenant.id,
            lambda unit: unit.turns.known_external(session.scope, marks),
            read_only=True,
        )
        said = dict(known)
        fit = []
        for mark, one in zip(marks, turns, strict=True):
            content = content_digest(one.turn)
            if said.setdefault(mark, content) == content:
                fit.append(one)
            else:
                self._problem(one.line, session.scope.name, EDITED)
        if len(fit) < len(turns):
            if fit:
                await self._append(session, fit)
        elif await self._has_ended(session):
            missing = sum(mark not in known for mark in marks)
            session.left_out += missing
            session.known += len(marks) - missing
        else:
            raise refused

    async def _has_ended(self, session: _Session) -> bool:
        stands = await self._tools.transact(
            session.scope.tenant.id, lambda unit: unit.sessions.get(session.scope), read_only=True
        )
        return stands.state is SessionState.ENDED

    async def _fact(self, entry: StatedFact) -> None:
        project = entry.project or (self._projects.get(entry.session) if entry.session else None)
        try:
            added = await self._store(entry, self._place(project))
        except (Conflict, InvalidInput) as refused:
            self._problem(entry.line, entry.session, str(refused))
        else:
            self._facts_added += added
            self._facts_known += not added
        self._progress("fact", 1)

    async def _store(self, entry: StatedFact, scope: Scope) -> bool:
        """Whether the fact is new; one that was stored before is not even embedded again."""
        fact, key = entry.fact, f"{FACT_KEY}{entry.external_id}"
        memory = parse_fact(self._tools, fact, idempotency_key=key)
        before = await self._tools.transact(
            scope.tenant.id, lambda unit: unit.guards.request_of(scope, key), read_only=True
        )
        if before == facts_request([fact], memory):
            return False
        receipt = await record_facts(self._tools, [fact], memory, scope=scope)
        return receipt.created

    def _place(self, project: str | None) -> Scope:
        """The scope above the sessions of `project`; a base scope that is narrowed goes first.

        What a file says must not lead out of the scope it was ingested in.
        """
        if project is None or self._base.path:
            return self._base
        return self._base.project(project)

    def _problem(self, line: int | None, session: str | None, reason: str) -> None:
        self._problem_count += 1
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(IngestProblem(line=line, session=session, reason=reason))


def _above(scope: Scope) -> Scope:
    return scope.parent or scope


def _ingested(session: _Session) -> IngestedSession:
    episode = session.episode
    return IngestedSession(
        name=session.scope.name,
        scope=session.scope,
        turns_added=session.added,
        turns_known=session.known,
        turns_left_out=session.left_out,
        episode_id=episode.id if episode else None,
        episode_created=bool(episode and episode.created),
        title=session.title,
    )
