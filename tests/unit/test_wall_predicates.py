"""The first wall, as it is written into statements; what it keeps apart is shown on real rows."""

from __future__ import annotations

from mnemic.store._scoping import owned_by, tenant_predicate


def test_both_predicates_bind_the_tenant_and_name_the_alias() -> None:
    tenant = "f.tenant_id = :tenant"

    assert tenant_predicate("f") == tenant
    assert owned_by("f") == f"{tenant} AND f.scope_id = ANY(CAST(:scopes AS uuid[]))"
