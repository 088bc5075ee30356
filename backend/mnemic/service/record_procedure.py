"""Keep a way of doing something as a procedure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import re2

from mnemic.errors import InvalidInput
from mnemic.model.normalise import clean_name, clean_text, digest, shown
from mnemic.model.procedure import Procedure, ProcedureCreate, ProcedureId, Step
from mnemic.model.receipt import Receipt
from mnemic.model.scope import Scope
from mnemic.service.parsing import (
    TASK_TYPE_CHARS_MAX,
    checked_flag,
    checked_given,
    checked_list,
    checked_metadata,
    checked_scope,
    checked_source,
    checked_tags,
    checked_trust,
)
from mnemic.service.tools import Tools
from mnemic.service.triggers import trigger_of
from mnemic.service.witness import (
    View,
    Work,
    Write,
    committed,
    land_and_show,
    land_once,
    request_digest,
)
from mnemic.store.procedures import procedure_text, steps_json
from mnemic.store.tombstones import procedure_mark
from mnemic.store.unit import Unit

__all__ = [
    "PROCEDURE",
    "checked_procedure",
    "checked_steps",
    "keep_procedure",
    "parse_steps",
    "record_procedure",
]

STEPS_MAX = 200
STEP_CHARS_MAX = 10_000
CONDITIONS_MAX = 100
PATTERN_CHARS_MAX = 1_000
_STEP = re.compile(r"^\s*(?:[-*•]|\(?\d{1,3}[.)])\s+(?P<action>\S.*)$")


async def _read(unit: Unit, scope: Scope, identity: UUID) -> Procedure | None:
    return await unit.procedures.lock(scope, identity)


PROCEDURE = View(Procedure, _read)
"""A live procedure."""


def parse_steps(content: str) -> tuple[str, tuple[Step, ...]]:
    """The name before a list, and the actions of its numbered or bulleted lines.

    Raises `InvalidInput` that shows the form.
    """
    steps: list[Step] = []
    heading: list[str] = []
    for line in content.splitlines():
        if match := _STEP.match(line):
            steps.append(Step(action=match["action"].strip()))
        elif not steps and line.strip():
            heading.append(line.strip())
    if not steps or not heading:
        raise InvalidInput(
            "must be the name of a procedure on the first line, then 1 to "
            f"{STEPS_MAX} steps, each on a line of its own:\nDeploy the service\n"
            "1. Run the tests\n2. Tag the release",
            field="content",
        )
    return clean_name(" ".join(heading).rstrip(":"), field="content"), tuple(steps)


def checked_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps if they can be held, 1 to `STEPS_MAX`. Raises `InvalidInput`."""
    given = checked_list(steps, field="steps", items_max=STEPS_MAX)
    if not given or not all(isinstance(one, Step) for one in given):
        raise InvalidInput(f"must be 1 to {STEPS_MAX} Steps, each Step(action='…')", field="steps")
    return tuple(
        Step(
            action=clean_text(step.action, field="steps.action", chars_max=STEP_CHARS_MAX),
            expected=None
            if step.expected is None
            else clean_text(step.expected, field="steps.expected", chars_max=STEP_CHARS_MAX),
        )
        for step in given
    )


def checked_pattern(pattern: str | None) -> str | None:
    """A pattern that RE2 accepts: linear in the text, bounded in length and in memory."""
    if pattern is None:
        return None
    text = clean_text(pattern, field="trigger_pattern", chars_max=PATTERN_CHARS_MAX)
    try:
        trigger_of(text)
    except re2.error as fault:
        raise InvalidInput(
            f"is not a pattern of RE2 syntax ({_told(fault)}); correct it: look-around and "
            "back-references are not part of it",
            field="trigger_pattern",
        ) from None
    return text


def _told(fault: re2.error) -> str:
    words = fault.args[0] if fault.args else ""
    text = words.decode(errors="replace") if isinstance(words, bytes) else str(words)
    return shown(text)[1:-1]


def checked_procedure(tools: Tools, given: ProcedureCreate, scope: Scope) -> Procedure:
    """The procedure if it can be held. Raises `InvalidInput` that names the field."""
    checked_given(given, ProcedureCreate, field="procedure")
    checked_scope(scope)
    limits = tools.settings.limits
    return Procedure(
        id=ProcedureId(tools.new_id()),
        scope_id=scope.id,
        name=clean_name(given.name, field="name"),
        task_type=clean_name(given.task_type, field="task_type", chars_max=TASK_TYPE_CHARS_MAX),
        trigger_pattern=checked_pattern(given.trigger_pattern),
        steps=checked_steps(given.steps),
        version=1,
        preconditions=_conditions(given.preconditions, "preconditions"),
        avoid_conditions=_conditions(given.avoid_conditions, "avoid_conditions"),
        success_count=0,
        failure_count=0,
        last_used=None,
        recorded_at=tools.now(),
        trust=checked_trust(given.trust),
        source=checked_source(given.source),
        metadata=checked_metadata(given.metadata, limits),
        tags=checked_tags(given.tags, limits),
    )


def _conditions(values: Sequence[str], field: str) -> tuple[str, ...]:
    given = checked_list(values, field=field, items_max=CONDITIONS_MAX)
    return tuple(clean_text(one, field=field, chars_max=STEP_CHARS_MAX) for one in given)


async def record_procedure(
    tools: Tools,
    procedure: Procedure,
    *,
    scope: Scope,
    key: str | None = None,
    lift: bool = False,
    notes: tuple[str, ...] = (),
) -> Receipt:
    """The procedure, checked before, is live in `scope` under its name; a change is a version.

    Raises `Retracted` if the same was forgotten here, unless `lift`.
    """
    write, work = await _prepared(tools, procedure, scope=scope, key=key, lift=lift, notes=notes)
    return await land_once(tools, write, work, scope=scope)


async def keep_procedure(
    tools: Tools, procedure: Procedure, *, scope: Scope, key: str | None = None, lift: bool = False
) -> Procedure:
    """As `record_procedure`: the procedure as it is kept."""
    write, work = await _prepared(tools, procedure, scope=scope, key=key, lift=lift)
    return await land_and_show(tools, write, work, PROCEDURE, scope=scope)


async def _prepared(
    tools: Tools,
    procedure: Procedure,
    *,
    scope: Scope,
    key: str | None,
    lift: bool,
    notes: tuple[str, ...] = (),
) -> tuple[Write, Work]:
    checked_flag(lift, field="lift")
    vectors = await tools.vectors([procedure_text(procedure)])
    model = await tools.live_model() if vectors else None
    steps = steps_json(procedure.steps)

    async def land(unit: Unit, now: datetime) -> Receipt:
        mark = procedure_mark(procedure.name, [step.action for step in procedure.steps])
        await unit.tombstones.respect(scope, mark, now=now, lift=lift)
        identity, version, created = await unit.procedures.put(scope, procedure, now=now)
        if vectors and model:
            ready = [(identity, vectors[0])]
            await unit.vectors.put("procedure", ready, model=model.id, now=now)
        return committed(
            identity, "procedure", vectors=vectors, version=version, created=created, notes=notes
        )

    write = Write(
        operation="memory.remember",
        keeps=True,
        request=request_digest(
            "procedure",
            procedure.name,
            steps,
            procedure.task_type,
            procedure.trigger_pattern,
            procedure.preconditions,
            procedure.avoid_conditions,
            procedure.metadata,
            procedure.tags,
            procedure.trust,
            procedure.source,
        ),
        content_digest=digest(procedure_text(procedure)),
        key=key,
    )
    return write, land
