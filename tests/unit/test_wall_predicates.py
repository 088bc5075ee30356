"""The first wall, as it is written into statements; what it keeps apart is shown on real rows."""

from __future__ import annotations

from mnemic.store._scoping import keyed_by, owned_by, tenant_predicate


def test_each_predicate_binds_the_tenant_and_names_the_alias() -> None:
    tenant = "f.tenant_id = :tenant"
    scopes = "CAST(:scopes AS uuid[])"

    assert tenant_predicate("f") == tenant
    assert owned_by("f") == f"{tenant} AND f.scope_id = ANY({scopes})"
    assert keyed_by("f") == f"{tenant} AND f.scope_id = ANY(ARRAY(SELECT unnest({scopes})))"
