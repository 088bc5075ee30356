"""Who may see what, in plain Python: a scope sees itself and what stands above it.

Every token and id has one place. Ending a session moves all of its places to the scope above it,
but for the values of its working memory, which nobody else ever sees.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from mnemic.model.scope import Scope
from proof.canaries import token

__all__ = ["Oracle"]

KINDS = ("turn", "episode", "fact", "procedure")


@dataclass(slots=True)
class Oracle:
    """What was planted, and where it stands now.

    With `tenants_alone` the scopes of a tenant are one: for runs in which scopes are ignored.
    """

    places: dict[str | UUID, Scope] = field(default_factory=dict)
    items: dict[str, dict[UUID, None]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    scopes: dict[UUID, Scope] = field(default_factory=dict)
    open_sessions: dict[Scope, datetime] = field(default_factory=dict)
    resting: set[Scope] = field(default_factory=set)
    ended_sessions: dict[Scope, None] = field(default_factory=dict)
    recorded_episodes: dict[UUID, None] = field(default_factory=dict)
    private: dict[str | UUID, None] = field(default_factory=dict)
    told_at_end: dict[str, None] = field(default_factory=dict)
    checkpoints: dict[UUID, Scope] = field(default_factory=dict)
    tokens: int = 0
    tenants_alone: bool = False

    def mint(self, scope: Scope) -> str:
        """A new token, which stands in `scope`."""
        self.tokens += 1
        made = token(self.tokens)
        self.places[made] = scope
        return made

    def mint_private(self, scope: Scope) -> str:
        """A new token that `scope` alone may see, and no scope below it."""
        made = self.mint(scope)
        self.private[made] = None
        return made

    def mint_working(self, scope: Scope) -> str:
        """As `mint_private`, in a note or the task: the episode of a session may tell of it."""
        made = self.mint_private(scope)
        self.told_at_end[made] = None
        return made

    def own_checkpoints(self, scope: Scope) -> list[UUID]:
        """The checkpoints of working memory that were made in `scope`."""
        return [one for one, place in self.checkpoints.items() if place == scope]

    def meet(self, scope: Scope) -> None:
        """The scope and those above it are known by their ids."""
        for one in scope.chain:
            if one.id not in self.scopes:
                self.scopes[one.id] = one
                self.places[one.id] = one

    def keep(self, kind: str, identity: UUID, scope: Scope) -> None:
        """A memory of that kind is known; it stands in `scope` unless its place is known."""
        self.items[kind].setdefault(identity)
        self.places.setdefault(identity, scope)

    def may_see(self, viewer: Scope, what: str | UUID) -> bool:
        """Whether it stands in the viewer's chain; of working memory, in the viewer itself."""
        if self.tenants_alone:
            return self.places[what].tenant == viewer.tenant
        if what in self.private:
            return self.places[what] == viewer
        return self.places[what] in viewer.chain

    def visible(self, viewer: Scope, kinds: Iterable[str]) -> list[UUID]:
        """The memories of the kinds that the viewer may see, the oldest first."""
        return [one for kind in kinds for one in self.items[kind] if self.may_see(viewer, one)]

    def hidden(self, viewer: Scope, kinds: Iterable[str]) -> list[UUID]:
        """The memories of the kinds that the viewer must not see."""
        return [one for kind in kinds for one in self.items[kind] if not self.may_see(viewer, one)]

    def active(self, session: Scope, at: datetime) -> None:
        """Something happened in the session, which is open unless it has ended before."""
        self.meet(session)
        if session in self.ended_sessions:
            return
        self.open_sessions[session] = max(at, self.open_sessions.get(session, at))

    def end(self, session: Scope) -> None:
        """What stood in the session stands in the scope above it, its own id included."""
        if self.open_sessions.pop(session, None) is None:
            return
        self.ended_sessions[session] = None
        if session.parent is None:
            raise AssertionError(session)
        for what, place in self.places.items():
            if place == session and (what not in self.private or what in self.told_at_end):
                self.places[what] = session.parent
                self.private.pop(what, None)

    def idle(self, *, at: datetime, after: timedelta) -> list[Scope]:
        """Open sessions in which nothing happened for so long, but for those that were paused."""
        return [
            one
            for one, last in self.open_sessions.items()
            if last < at - after and one not in self.resting
        ]
