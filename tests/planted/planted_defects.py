"""Faults that others had and this product must not have, each as a switch, with who catches it.

A switch alters the product in the process of one pytest run, or the schema of that run's databases.
No setting reaches any of this.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from mnemic.errors import StoreUnavailable
from mnemic.model import context_choice, context_fill, context_form, normalise
from mnemic.model import scope as scopes
from mnemic.model.session import SessionState
from mnemic.model.trust import Trust
from mnemic.service import end_session, forget, memory_input, record_episode, tools
from mnemic.service import facts as fact_service
from mnemic.service import procedures as procedure_service
from mnemic.store import (
    _scoping,
    beginning,
    candidate_statements,
    ending,
    fact_ledger,
    guards,
    sessions,
    tombstones,
    turns,
    vectors,
)
from mnemic.store import unit as units
from mnemic.store.statement import Statement
from mnemic.store.working import client, keys, place, valkey

SQL_VARIABLE = "MNEMIC_TESTS_PLANTED_SQL"


@dataclass(frozen=True, slots=True)
class Defect:
    """`plant` brings it in; at least one of `caught_by` fails then."""

    name: str
    plant: Callable[[], None]
    caught_by: tuple[str, ...]


DEFECTS: dict[str, Defect] = {}


def _defect(*caught_by: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(plant: Callable[[], None]) -> Callable[[], None]:
        name = getattr(plant, "__name__", "").replace("_", "-")
        DEFECTS[name] = Defect(name, plant, tuple(f"tests/{test}" for test in caught_by))
        return plant

    return register


def _schema(statement: str) -> None:
    """The owner runs it on every database that is migrated."""
    os.environ[SQL_VARIABLE] = statement


def _rewrite(statement: Statement, old: str, new: str) -> None:
    assert old in statement.template, f"{old!r} stands no longer in the statement"
    statement.template = statement.template.replace(old, new)


# Isolation


@_defect("store/test_unit.py::test_the_tenant_is_gone_from_the_connection_after_the_unit")
def session_level_set() -> None:
    begin = beginning.Beginning.of

    async def lasting(self: Any, unit: Any, **asked: bool) -> None:
        await begin(self, unit, **asked)
        await unit.connection.execute(f"SET mnemic.tenant_id = '{unit.tenant}'")

    beginning.Beginning.of = lasting


@_defect(
    "store/test_walls.py::test_the_owner_sees_and_changes_nothing_under_force",
    "store/test_catalogue.py::test_a_migrated_database_keeps_every_rule",
)
def missing_force() -> None:
    _schema("ALTER TABLE mnemic.facts NO FORCE ROW LEVEL SECURITY")


@_defect("store/test_walls.py::test_a_tenant_sees_its_own_row_of_each_table_and_no_other")
def policy_that_lets_everybody_in() -> None:
    _schema("CREATE POLICY planted ON mnemic.facts FOR SELECT TO PUBLIC USING (true)")


@_defect("store/test_catalogue.py::test_a_migrated_database_keeps_every_rule")
def unique_key_without_tenant() -> None:
    _schema("ALTER TABLE mnemic.procedures ADD CONSTRAINT planted UNIQUE (name)")


@_defect("store/test_unit_losses.py::test_a_statement_keeps_tenants_apart_by_itself")
def tenant_predicate_left_out() -> None:
    _scoping.tenant_predicate = lambda alias: f"{alias} IS NOT NULL"


@_defect("isolation/test_scopes.py::test_siblings_descendants_and_other_tenants_are_never_seen")
def scopes_ignored() -> None:
    _scoping.scopes_predicate = lambda *_: "CAST(:scopes AS uuid[]) IS NOT NULL"


@_defect("unit/test_scope_ids.py")
def scope_path_without_separators() -> None:
    def joined(scope: scopes.Scope) -> scopes.ScopeId:
        names = "".join(name for _, name in scope.path)
        return scopes.ScopeId(scopes.uuid5(scope.tenant.id, f"scope;{names}"))

    scopes._scope_id = joined


@_defect("isolation/test_scopes.py::test_writing_upward_needs_a_grant")
def upward_writes_without_a_grant() -> None:
    async def waved_through(_unit: Any, scope: Any, target: Any) -> Any:
        return next(one for one in scope.chain if one.id == target)

    forget.require_write = waved_through
    fact_service.require_write = waved_through
    procedure_service.require_write = waved_through


# Working memory


@_defect("working/test_serving.py::test_nothing_is_looked_for_by_a_pattern")
def glob_key_listing() -> None:
    heads = valkey.Valkey.heads

    async def globbed(self: Any, scope: Any) -> Any:
        await self.client.call("KEYS", f"*{scope.id.hex}*")
        return await heads(self, scope)

    valkey.Valkey.heads = globbed


@_defect("working/test_encoding.py::test_two_keys_never_share_a_field_a_text_or_a_digest")
def key_encoding_that_is_not_injective() -> None:
    keys.text_of_field = lambda field: field[1:].decode().replace("\x00", "\\0")


@_defect("working/test_serving.py::test_deployments_with_names_that_begin_alike_share_nothing")
def deployments_share_keys() -> None:
    keys._short = lambda namespace: namespace[:4]
    keys.scope_keys.cache_clear()


@_defect("working/test_contract.py::test_the_contract_holds")
def expired_key_returned() -> None:
    def undying(entry: place.Entry, _now_ms: int) -> bool:
        return entry.state is not place.State.DELETED

    place.Entry.is_live = undying


@_defect("working/test_contract.py::test_the_contract_holds")
def capacity_not_enforced() -> None:
    of = place.Limits.of
    place.Limits.of = lambda settings: replace(
        of(settings), keys_max=10**9, bytes_max=10**12, notes_max=10**9
    )


@_defect("working/test_contract.py::test_the_contract_holds")
def an_update_shortens_the_time_to_live() -> None:
    place.expiry_of = lambda put, _old, *, ttl_ms, now_ms: (
        now_ms + (put.ttl_ms or ttl_ms),
        place.Expiry.DEFAULT,
    )


@_defect("working/test_serving.py::test_a_cancelled_call_leaves_no_answer_for_the_next_one")
def a_cancelled_call_gives_its_connection_back() -> None:
    async def kept(_connection: Any) -> None:
        return None

    pools = client._Pool.take

    def take(self: Any) -> Any:
        connection = pools(self)
        self._idle.append(connection)  # also while somebody waits for its answer
        return connection

    client._disconnect = kept
    client._Pool.take = take


# Exactly once, and what is told of it


@_defect(
    "service/test_remember.py::test_the_same_key_has_one_effect_and_one_answer",
    "service/test_episodic.py::test_one_key_is_one_episode",
)
def idempotency_key_not_claimed() -> None:
    async def unclaimed(*_: Any, **__: Any) -> None:
        return None

    guards.GuardStore.claim = unclaimed


@_defect("service/test_remember.py::test_the_same_key_with_another_content_is_refused")
def a_key_answers_for_another_request() -> None:
    answer_of = guards.GuardStore.answer_of

    async def whatever(self: Any, scope: Any, key: str, *, request: bytes) -> Any:
        del request
        kept = await self.request_of(scope, key)
        return None if kept is None else await answer_of(self, scope, key, request=kept)

    guards.GuardStore.answer_of = whatever


@_defect("store/test_unit.py::test_a_connection_lost_before_the_commit_is_an_unknown_outcome")
def an_unknown_outcome_called_failure() -> None:
    class Failed(StoreUnavailable):
        """The database cannot be reached; nothing was changed."""

    ending.OutcomeUnknown = Failed


@_defect("store/test_unit_losses.py::test_a_write_whose_outcome_is_unknown_is_not_run_again")
def blind_retry_of_an_unknown_outcome() -> None:
    transact = units.Database.transact

    async def stubborn(self: Any, tenant: Any, work: Any, **given: Any) -> Any:
        try:
            return await transact(self, tenant, work, **given)
        except ending.OutcomeUnknown:
            return await transact(self, tenant, work, **given)

    units.Database.transact = stubborn


@_defect("wire/test_wire_faults.py::test_a_write_over_a_broken_wire_says_what_became_of_it")
def a_landed_write_told_as_failed() -> None:
    fact_service.after_landing = nullcontext
    procedure_service.after_landing = nullcontext


@_defect("store/test_unit.py::test_a_deadlock_is_run_again_and_reaches_no_caller")
def a_deadlock_reaches_the_caller() -> None:
    units.is_retryable = lambda _fault: False


@_defect("service/test_sessions.py::test_many_enders_at_once_write_one_episode")
def episode_written_twice() -> None:
    lock = sessions.SessionStore.lock

    async def never_ended(self: Any, scope: Any) -> Any:
        return replace(await lock(self, scope), state=SessionState.ACTIVE)

    lift = turns.TurnStore.lift

    async def as_if_all(self: Any, scope: Any, *, parent: Any) -> int:
        await lift(self, scope, parent=parent)
        return 10**6

    sessions.SessionStore.lock = never_ended
    turns.TurnStore.lift = as_if_all
    _rewrite(sessions.END, "AND s.state <> 'ended'", "")
    end_session.episode_id_of = lambda _scope: uuid4()


# Knowledge


@_defect(
    "service/test_semantic.py::test_facts_of_an_episode_are_extracted_once_with_it_as_evidence"
)
def evidence_counted_twice() -> None:
    put_all = fact_ledger.FactLedger.put_all

    async def counted(self: Any, scope: Any, facts: Any, sources: Any, **given: Any) -> Any:
        anew = [replace(one, source_id=uuid4()) for one in sources]
        return await put_all(self, scope, facts, anew, **given)

    fact_ledger.FactLedger.put_all = counted


@_defect("service/test_remember.py::test_a_single_valued_predicate_keeps_one_live_value")
def two_live_values_of_a_single_valued_predicate() -> None:
    async def none(_self: Any, _predicates: Any) -> set[str]:
        return set()

    fact_ledger.FactLedger.single_among = none


@_defect("service/test_retractions.py::test_every_type_is_refused_after_it_was_forgotten")
def tombstone_not_asked_on_one_path() -> None:
    respect = tombstones.TombstoneStore.respect

    async def unless_an_episode(self: Any, scope: Any, mark: bytes, **given: Any) -> None:
        if mark not in _episode_marks:
            await respect(self, scope, mark, **given)

    _episode_marks: set[bytes] = set()
    make = record_episode.episode_mark

    def remembered(summary: str) -> bytes:
        _episode_marks.add(made := make(summary))
        return made

    record_episode.episode_mark = remembered
    tombstones.TombstoneStore.respect = unless_an_episode


@_defect("service/test_recall.py::test_forgetting_one_unknown_id_forgets_none")
def forgetting_skips_what_it_does_not_find() -> None:
    forget.NotFound = _Ignored


class _Ignored(Exception):
    """Made, and never raised where it counts."""


@_defect("service/test_models.py::test_a_vector_of_another_model_is_not_ranked")
def vectors_of_another_model_ranked() -> None:
    for statement in (
        candidate_statements.TURNS,
        candidate_statements.TURNS_OF_ACTOR,
        candidate_statements.TURNS_WORDED,
        candidate_statements.OTHERS_WORDED,
        *candidate_statements.OTHERS.values(),
    ):
        _rewrite(statement, "v.model_id = :model", "(v.model_id = :model OR true)")


@_defect("service/test_models.py::test_another_model_than_the_one_that_is_stored_is_refused")
def embedding_model_swapped_in_silence() -> None:
    async def whichever(self: Any) -> Any:
        return await self.transact(None, lambda unit: unit.models.live())

    tools.Tools.live_model = whichever


@_defect("service/test_recall.py::test_vectors_that_are_missing_are_filled_later")
def checkpoint_by_time() -> None:
    for statement in vectors.MISSING.values():
        _rewrite(statement, "{tenant:m}", "{tenant:m} AND m.recorded_at > now()")


# Input, output and witnesses


@_defect("service/test_remember.py::test_a_time_without_a_zone_is_refused")
def naive_time_accepted() -> None:
    checked = normalise.checked_time

    def assumed(value: Any, *, field: str) -> datetime:
        if isinstance(value, datetime) and value.tzinfo is None:
            return value.replace(tzinfo=UTC)
        return checked(value, field=field)

    memory_input.checked_time = assumed
    record_episode.checked_time = assumed


@_defect("service/test_remember.py::test_what_cannot_be_held_is_refused_by_the_name_of_its_field")
def nul_let_through_to_the_driver() -> None:
    memory_input.clean_text = lambda value, **_: value


@_defect("unit/test_context_hostile.py::test_no_hostile_string_leaves_its_frame")
def an_item_can_leave_its_frame() -> None:
    context_form._quoted = lambda item: f'"{item}"'


@_defect("service/test_context.py::test_what_a_tool_or_an_import_said_is_never_an_instruction")
def whatever_was_recorded_is_an_instruction() -> None:
    context_choice.Trust = context_fill.Trust = SimpleNamespace(APPROVED=Trust.IMPORTED)


@_defect("service/test_remember.py::test_every_change_is_witnessed_without_its_content")
def a_change_without_its_witness() -> None:
    async def unseen(*_: Any, **__: Any) -> None:
        return None

    guards.GuardStore.audit = unseen


@_defect("store/test_unit.py::test_a_read_only_unit_refuses_to_write")
def a_read_that_may_write() -> None:
    begin = beginning.Beginning.of

    async def writing(self: Any, unit: Any, *, read_only: bool, keep_plans: bool) -> None:
        del read_only
        await begin(self, unit, read_only=False, keep_plans=keep_plans)

    beginning.Beginning.of = writing
