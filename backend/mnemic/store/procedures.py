"""Skills and their versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from mnemic.model.normalise import comparison_key
from mnemic.model.procedure import Procedure, ProcedureId, Step
from mnemic.model.scope import MemoryScope, Scope
from mnemic.model.trust import Trust
from mnemic.store.columns import wording_values
from mnemic.store.statement import Statement
from mnemic.store.tombstones import procedure_mark
from mnemic.store.wording import words_of

if TYPE_CHECKING:
    from mnemic.store.unit import Unit

__all__ = ["ProcedureStore", "procedure_text", "steps_json"]

# A live procedure of the same name becomes what is told now; other steps are its next version.
PUT = Statement("""
    INSERT INTO mnemic.procedures AS p (tenant_id, id, scope_id, project_id, agent_type_id, name,
                                        name_key, task_type, trigger_pattern, steps, preconditions,
                                        avoid_conditions, metadata, tags, trust, source,
                                        recorded_at, updated_at, stems, stem_count, word_count, tsv)
    VALUES (:tenant, :id, :scope, :project, :agent_type, :name, :name_key, :task_type,
            :trigger_pattern, :steps, :preconditions, :avoid_conditions, :metadata, :tags, :trust,
            :source, :now, :now, :stems, :stem_count, :word_count,
            CAST(CAST(:tsv AS text) AS tsvector))
    ON CONFLICT (tenant_id, scope_id, name_key) WHERE status = 'live'
    DO UPDATE SET version = p.version + CASE WHEN p.steps = excluded.steps THEN 0 ELSE 1 END,
                  name = excluded.name, steps = excluded.steps, task_type = excluded.task_type,
                  trigger_pattern = excluded.trigger_pattern,
                  preconditions = excluded.preconditions,
                  avoid_conditions = excluded.avoid_conditions, metadata = excluded.metadata,
                  tags = excluded.tags, trust = excluded.trust, source = excluded.source,
                  updated_at = excluded.updated_at, stems = excluded.stems,
                  stem_count = excluded.stem_count, word_count = excluded.word_count,
                  tsv = excluded.tsv, needs_vector = true
    RETURNING p.id, p.version, (xmax = 0) AS created
""")

LOCK_NAMED = Statement("""
    SELECT p.id FROM mnemic.procedures p
     WHERE {tenant:p} AND p.scope_id = :scope AND p.name_key = :name_key AND p.status = 'live'
       FOR UPDATE
""")

ADD_VERSION = Statement("""
    INSERT INTO mnemic.procedure_versions (tenant_id, procedure_id, version, steps, recorded_at)
    VALUES (:tenant, :procedure, :version, :steps, :now)
    ON CONFLICT (tenant_id, procedure_id, version) DO NOTHING
""")

# What a procedure is made of: its words are as long as itself, and nobody asks for them.
COLUMNS = (
    *("id", "scope_id", "name", "task_type", "trigger_pattern", "steps", "version"),
    *("preconditions", "avoid_conditions", "success_count", "failure_count", "last_used"),
    *("recorded_at", "trust", "source", "metadata", "tags"),
)
_COLUMNS = ", ".join(f"p.{name}" for name in COLUMNS)

BY_IDS = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.procedures p
     WHERE {{keyed:p}} AND p.id = ANY(CAST(:ids AS uuid[])) AND p.status = 'live'
""")

OF_TASK = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.procedures p
     WHERE {{owned:p}} AND p.status = 'live' AND p.archived_at IS NULL AND p.task_type = :task_type
     ORDER BY p.id LIMIT :limit
""")

TRIGGERS = Statement("""
    SELECT p.id, p.trigger_pattern FROM mnemic.procedures p
     WHERE {owned:p} AND p.status = 'live' AND p.archived_at IS NULL
       AND p.trigger_pattern IS NOT NULL
     ORDER BY p.id LIMIT :limit
""")

LOCK = Statement(f"""
    SELECT {_COLUMNS} FROM mnemic.procedures p
     WHERE {{keyed:p}} AND p.id = :id AND p.status = 'live' FOR UPDATE
""")

ADD_OUTCOME = Statement("""
    INSERT INTO mnemic.procedure_outcomes (tenant_id, id, procedure_id, version, success,
                                           session_id, note, occurred_at, recorded_at)
    VALUES (:tenant, :id, :procedure, :version, :success, :session, :note, :now, :now)
    ON CONFLICT (tenant_id, id) DO NOTHING
""")

# The counts follow from the ledger, in the transaction of each of its rows.
COUNT_OUTCOME = Statement("""
    UPDATE mnemic.procedures p
       SET success_count = p.success_count + CASE WHEN CAST(:success AS boolean) THEN 1 ELSE 0 END,
           failure_count = p.failure_count + CASE WHEN CAST(:success AS boolean) THEN 0 ELSE 1 END,
           last_used = greatest(p.last_used, :now), updated_at = :now
     WHERE {tenant:p} AND p.id = :procedure
""")

SET_STEPS = Statement("""
    UPDATE mnemic.procedures p
       SET steps = :steps, version = p.version + 1, updated_at = :now, stems = :stems,
           stem_count = :stem_count, word_count = :word_count,
           tsv = CAST(CAST(:tsv AS text) AS tsvector), needs_vector = true
     WHERE {tenant:p} AND p.id = :id
    RETURNING p.version
""")

OF_SCOPE = Statement(f"""
    SELECT {_COLUMNS}, p.name_key FROM mnemic.procedures p
     WHERE {{tenant:p}} AND p.scope_id = :scope AND p.status = 'live' ORDER BY p.id FOR UPDATE
""")

NAMED = Statement("""
    SELECT p.name_key FROM mnemic.procedures p
     WHERE {tenant:p} AND p.scope_id = :scope AND p.name_key = ANY(CAST(:names AS text[]))
       AND p.status = 'live'
     ORDER BY p.id FOR UPDATE
""")

LIFT = Statement("""
    UPDATE mnemic.procedures p SET scope_id = :parent, stats_counted = false, updated_at = :now
     WHERE {tenant:p} AND p.scope_id = :session AND p.id = ANY(CAST(:ids AS uuid[]))
""")

# A procedure that became a version of another is what the session knew, in its own past alone.
LEAVE_BEHIND = Statement("""
    UPDATE mnemic.procedures p SET status = 'retired', retired_at = :now, updated_at = :now
     WHERE {tenant:p} AND p.scope_id = :session AND p.id = :id
""")

# The outcomes of a procedure count for the one that it became a version of.
MOVE_OUTCOMES = Statement("""
    WITH moved AS (
      INSERT INTO mnemic.procedure_outcomes (tenant_id, id, procedure_id, version, success,
                                             session_id, note, occurred_at, recorded_at)
      SELECT o.tenant_id, CAST(md5(concat(o.id, CAST(:to AS uuid))) AS uuid), :to, :version,
             o.success, o.session_id, o.note, o.occurred_at, o.recorded_at
        FROM mnemic.procedure_outcomes o
       WHERE {tenant:o} AND o.procedure_id = :source
      ON CONFLICT (tenant_id, id) DO NOTHING
      RETURNING success, occurred_at
    ), sums AS (
      SELECT count(*) FILTER (WHERE m.success) AS good,
             count(*) FILTER (WHERE NOT m.success) AS bad,
             max(m.occurred_at) AS last
        FROM moved m
    )
    UPDATE mnemic.procedures p
       SET success_count = p.success_count + s.good, failure_count = p.failure_count + s.bad,
           last_used = greatest(p.last_used, s.last), updated_at = :now
      FROM sums s
     WHERE {tenant:p} AND p.id = :to
""")


def steps_json(steps: Sequence[Step]) -> list[dict[str, str | None]]:
    """The steps as they are kept."""
    return [{"action": step.action, "expected": step.expected} for step in steps]


def procedure_text(procedure: Procedure) -> str:
    """What is embedded and searched of a procedure."""
    trigger = f" when {procedure.trigger_pattern}" if procedure.trigger_pattern else ""
    steps = "; ".join(step.action for step in procedure.steps)
    return f"{procedure.name}{trigger}: {steps}"


class ProcedureStore:
    """Keeps procedures, a version for each change. Never commits; the unit does."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def put(
        self, scope: Scope, procedure: Procedure, *, now: datetime
    ) -> tuple[ProcedureId, int, bool]:
        """The procedure stands in `scope` under its name: id, version, whether it is new."""
        project = scope.ancestor(MemoryScope.PROJECT)
        agent_type = scope.ancestor(MemoryScope.AGENT_TYPE)
        steps = steps_json(procedure.steps)
        name_key = comparison_key(procedure.name)
        known = await self._unit.fetch_one(LOCK_NAMED, scope=scope.id, name_key=name_key)
        if known is not None:
            await self._unit.statistics.uncount("procedure", known["id"])
        row = await self._unit.fetch_one(
            PUT,
            id=procedure.id,
            scope=scope.id,
            project=project.id if project else None,
            agent_type=agent_type.id if agent_type else None,
            name=procedure.name,
            name_key=name_key,
            task_type=procedure.task_type,
            trigger_pattern=procedure.trigger_pattern,
            steps=steps,
            preconditions=list(procedure.preconditions),
            avoid_conditions=list(procedure.avoid_conditions),
            metadata=procedure.metadata,
            tags=list(procedure.tags),
            trust=int(procedure.trust),
            source=procedure.source,
            now=now,
            **wording_values(words_of(procedure_text(procedure))),
        )
        assert row is not None  # noqa: S101 - an upsert always returns its row
        await self._unit.execute(
            ADD_VERSION,
            procedure=row["id"],
            version=row["version"],
            steps=steps,
            now=now,
        )
        return ProcedureId(row["id"]), row["version"], row["created"]

    async def by_ids(self, scope: Scope, ids: Sequence[UUID]) -> list[Procedure]:
        """The live procedures among `ids` that are visible from `scope`, in no order."""
        rows = await self._unit.fetch(BY_IDS, scopes=scope.visible_ids, ids=list(ids))
        return [procedure_of(row) for row in rows]

    async def of_task(self, scope: Scope, task_type: str, *, limit: int) -> list[Procedure]:
        """Live procedures of a task type that are visible from `scope`."""
        rows = await self._unit.fetch(
            OF_TASK, scopes=scope.visible_ids, task_type=task_type, limit=limit
        )
        return [procedure_of(row) for row in rows]

    async def triggers(self, scope: Scope, *, limit: int) -> list[tuple[UUID, str]]:
        """Ids and trigger patterns of live procedures that are visible from `scope`."""
        rows = await self._unit.fetch(TRIGGERS, scopes=scope.visible_ids, limit=limit)
        return [(identity, pattern) for identity, pattern in rows]

    async def lock(self, scope: Scope, identity: UUID) -> Procedure | None:
        """The live procedure, if it is visible from `scope`; held for the unit."""
        row = await self._unit.fetch_one(LOCK, scopes=scope.visible_ids, id=identity)
        return procedure_of(row) if row is not None else None

    async def add_outcome(
        self,
        procedure: Procedure,
        outcome: UUID,
        *,
        success: bool,
        session: UUID | None,
        note: str | None,
        now: datetime,
    ) -> bool:
        """The outcome is in the ledger of the procedure, whose row is held; false if it was."""
        values = {"procedure": procedure.id, "success": success, "now": now}
        added = await self._unit.execute(
            ADD_OUTCOME,
            id=outcome,
            version=procedure.version,
            session=session,
            note=note,
            **values,
        )
        if added:
            await self._unit.execute(COUNT_OUTCOME, **values)
        return added == 1

    async def set_steps(self, procedure: Procedure, *, now: datetime) -> int:
        """The procedure, whose row is held, has its new steps under the next version."""
        steps = steps_json(procedure.steps)
        await self._unit.statistics.uncount("procedure", procedure.id)
        row = await self._unit.fetch_one(
            SET_STEPS,
            id=procedure.id,
            steps=steps,
            now=now,
            **wording_values(words_of(procedure_text(procedure))),
        )
        assert row is not None  # noqa: S101 - the row is held
        version: int = row["version"]
        await self._unit.execute(
            ADD_VERSION, procedure=procedure.id, version=version, steps=steps, now=now
        )
        return version

    async def lift(self, scope: Scope, *, parent: Scope, now: datetime) -> int:
        """The procedures of a session's scope stand in its parent's; how many moved.

        One whose name the parent has becomes the next version of that, by the rules of `put`, and
        its outcomes count there. One that the parent retracted stays behind.
        """
        rows = await self._unit.fetch(OF_SCOPE, scope=scope.id)
        marks = {
            row["id"]: procedure_mark(row["name"], [step["action"] for step in row["steps"]])
            for row in rows
        }
        refused = await self._unit.tombstones.refused(parent, sorted(set(marks.values())))
        rows = [row for row in rows if marks[row["id"]] not in refused]
        names = [row["name_key"] for row in rows]
        taken = await self._unit.fetch(NAMED, scope=parent.id, names=names)
        known = {row["name_key"] for row in taken}
        free = [row["id"] for row in rows if row["name_key"] not in known]
        await self._unit.execute(LIFT, session=scope.id, parent=parent.id, ids=free, now=now)
        for row in rows:
            if row["name_key"] in known:
                await self._merge(scope, procedure_of(row), parent=parent, now=now)
        return len(rows)

    async def _merge(
        self, scope: Scope, procedure: Procedure, *, parent: Scope, now: datetime
    ) -> None:
        anew = ProcedureId(uuid5(procedure.id, f"lifted;{parent.id}"))
        kept, version, _ = await self.put(parent, replace(procedure, id=anew), now=now)
        await self._unit.execute(
            MOVE_OUTCOMES, source=procedure.id, to=kept, version=version, now=now
        )
        # The answers of keys stay as they were, until it is forgotten where it stands now.
        await self._unit.guards.name_too(procedure.id, to=kept)
        await self._unit.execute(LEAVE_BEHIND, session=scope.id, id=procedure.id, now=now)
        await self._unit.vectors.drop("procedure", [procedure.id], now=now)


def procedure_of(row: Any) -> Procedure:
    """The value of a row of `procedures`."""
    return Procedure(
        id=ProcedureId(row["id"]),
        scope_id=row["scope_id"],
        name=row["name"],
        task_type=row["task_type"],
        trigger_pattern=row["trigger_pattern"],
        steps=tuple(Step(**step) for step in row["steps"]),
        version=row["version"],
        preconditions=tuple(row["preconditions"]),
        avoid_conditions=tuple(row["avoid_conditions"]),
        success_count=row["success_count"],
        failure_count=row["failure_count"],
        last_used=row["last_used"],
        recorded_at=row["recorded_at"],
        trust=Trust(row["trust"]),
        source=row["source"],
        metadata=row["metadata"],
        tags=tuple(row["tags"]),
    )
