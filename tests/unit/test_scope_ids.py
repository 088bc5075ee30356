from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mnemic.model.scope import MemoryScope, Scope, Tenant, TenantKind

_LEVELS = (
    MemoryScope.PROJECT,
    MemoryScope.AGENT_TYPE,
    MemoryScope.AGENT_INSTANCE,
    MemoryScope.SESSION,
)
# Few letters and the encoding's own marks, so that careless encodings meet.
_NAMES = st.text("a1:;", min_size=1, max_size=3)


@st.composite
def scopes(draw: st.DrawFn) -> Scope:
    tenant = Tenant(draw(st.sampled_from(TenantKind)), draw(st.sampled_from(["a", "aa"])))
    path = [(level, draw(_NAMES)) for level in _LEVELS if draw(st.booleans())]
    return Scope(tenant, tuple(path))


@given(scopes(), scopes())
def test_two_scopes_never_share_an_id(one: Scope, other: Scope) -> None:
    assert (one.id == other.id) is (one == other)


def test_names_that_run_into_each_other_are_told_apart() -> None:
    apart = Scope.user("u").project("a").session("bc")
    together = Scope.user("u").project("ab").session("c")
    of_another_level = Scope.user("u").project("a").agent("bc")

    assert len({apart.id, together.id, of_another_level.id}) == 3
