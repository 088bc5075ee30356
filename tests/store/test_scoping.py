"""Every method of a store takes a scope; the exceptions are these, each for its reason."""

from __future__ import annotations

import inspect
from functools import cached_property

from mnemic.store.unit import Unit

# Maintenance asks for a whole tenant, or before a tenant is known; models and predicates are
# nobody's; and some methods change a row that the same unit has read by a scope and holds.
EXCEPTIONS = {
    "EmbeddingModelStore.live": "models are nobody's",
    "EmbeddingModelStore.register": "models are nobody's",
    "EpisodeStore.set_importance": "holds the row",
    "FactLedger.evidence_of": "holds the row",
    "FactLedger.is_single": "predicates are nobody's",
    "FactLedger.reinforce": "holds the row",
    "FactLedger.single_among": "predicates are nobody's",
    "FactStore.set_verification": "holds the row",
    "ForgettingStore.delete_resting": "the rows are held",
    "GenerationStore.read": "the whole tenant",
    "GuardStore.name_too": "the rows are held",
    "GuardStore.unquote": "a key of any scope may have named what is forgotten",
    "JobStore.has_beyond": "no tenant is known yet",
    "JobStore.tenants_due": "no tenant is known yet",
    "LineageStore.resting_on": "what was made of a source, wherever it stands",
    "LineageStore.withdraw": "the rows are held",
    "ProcedureStore.add_outcome": "holds the row",
    "ProcedureStore.set_steps": "holds the row",
    "SessionStore.idle": "the whole tenant",
    "StatisticsStore.absorb": "the whole tenant",
    "StatisticsStore.drop_unused": "the rows are held",
    "StatisticsStore.uncount": "holds the row",
    "VectorStore.drop": "the rows are held",
    "VectorStore.due": "no tenant is known yet",
    "VectorStore.missing": "the whole tenant",
    "VectorStore.missing_of": "the caller has written to the sessions",
    "TombstoneStore.hold": "it was asked with one",
    "VectorStore.put": "the memory's own row decides",
    "VectorStore.still": "the whole tenant",
}


def _stores() -> list[type]:
    hints = {
        name: inspect.get_annotations(member.func, eval_str=False)["return"]
        for name, member in vars(Unit).items()
        if isinstance(member, cached_property)
    }
    module = inspect.getmodule(Unit)
    return [getattr(module, hint) for hint in hints.values()]


def _methods() -> dict[str, set[str]]:
    return {
        f"{store.__name__}.{name}": set(inspect.signature(method).parameters)
        for store in _stores()
        for name, method in inspect.getmembers(store, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_store_method_takes_a_scope_but_these() -> None:
    without = {name for name, parameters in _methods().items() if "scope" not in parameters}

    assert without == set(EXCEPTIONS)


def test_the_stores_are_those_of_the_unit() -> None:
    assert len(_stores()) >= 15
    assert len(_methods()) >= 50
