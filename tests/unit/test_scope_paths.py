"""Scopes: which ids they have, what they see, and which names they take."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

import pytest

from mnemic.errors import InvalidInput
from mnemic.model.scope import MemoryScope, Scope, Tenant, TenantKind

NAMESPACE = UUID("7d2f0c1e-0a56-5b7c-9a3e-6d6e656d6963")
DEEP = Scope.user("u-17").project("checkout").agent_type("coder").agent("a-1").session("s-9")


def test_ids_follow_from_the_names_and_stay_the_same_for_ever() -> None:
    person = uuid5(NAMESPACE, "person\x1fu-17")

    path = "project:8:checkout;agent_type:5:coder;agent_instance:3:a-1;session:3:s-9;"

    assert DEEP.tenant.id == person
    assert DEEP.id == uuid5(person, f"scope;{path}")
    assert Scope.user("u-17").id == uuid5(person, "scope;")
    assert Scope.organisation("u-17").tenant.id == uuid5(NAMESPACE, "organisation\x1fu-17")


def test_a_person_and_an_organisation_of_one_name_are_two_tenants() -> None:
    person, organisation = Scope.user("x"), Scope.organisation("x")

    assert person.tenant == Tenant(TenantKind.PERSON, "x")
    assert organisation.tenant == Tenant(TenantKind.ORGANISATION, "x")
    assert len({person.tenant.id, organisation.tenant.id, person.id, organisation.id}) == 4


def test_each_level_narrows_by_one_name() -> None:
    assert DEEP.path == (
        (MemoryScope.PROJECT, "checkout"),
        (MemoryScope.AGENT_TYPE, "coder"),
        (MemoryScope.AGENT_INSTANCE, "a-1"),
        (MemoryScope.SESSION, "s-9"),
    )
    assert (DEEP.level, DEEP.name) == (MemoryScope.SESSION, "s-9")
    assert (Scope.user("x").level, Scope.user("x").name) == (MemoryScope.GLOBAL, "")


def test_a_scope_sees_itself_and_what_is_above_it_narrowest_first() -> None:
    seen = DEEP.chain

    assert [one.level.value for one in seen] == [
        "session",
        "agent_instance",
        "agent_type",
        "project",
        "global",
    ]
    assert seen[0] == DEEP
    assert [one.parent for one in seen] == [*seen[1:], None]
    assert DEEP.visible_ids == [one.id for one in seen]
    assert len(set(DEEP.visible_ids)) == 5


def test_an_ancestor_is_found_by_its_level() -> None:
    assert DEEP.ancestor(MemoryScope.PROJECT) == Scope.user("u-17").project("checkout")
    assert DEEP.ancestor(MemoryScope.SESSION) == DEEP
    assert DEEP.ancestor(MemoryScope.GLOBAL) == Scope.user("u-17")
    assert Scope.user("u-17").session("s").ancestor(MemoryScope.PROJECT) is None


def test_names_cannot_be_moved_across_a_border() -> None:
    one = Scope.user("u").project("a").session("b")
    other = Scope.user("u").project("a;session:1:b")

    assert one.id != other.id


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "must not be empty or blank; leave the level out instead"),
        (" \u200b\t", "must not be empty or blank; leave the level out instead"),
        ("a\x00b", "must not hold a NUL character; remove it"),
        ("half \ud800", "holds a lone surrogate at character 5; remove it"),
        ("x" * 10_241, "is 10241 bytes long; the most is 10240. Use a digest of it"),
        ("é" * 5_121, "is 10242 bytes long; the most is 10240. Use a digest of it"),
        (7, "must be text, not int"),
        (None, "must be text, not NoneType"),
    ],
)
def test_a_name_that_cannot_be_held_is_refused_by_its_level(name: Any, word: str) -> None:
    with pytest.raises(InvalidInput) as of_a_project:
        Scope.user("u").project(name)
    with pytest.raises(InvalidInput) as of_a_tenant:
        Scope.user(name)

    assert str(of_a_project.value) == f"project: {word}"
    assert str(of_a_tenant.value) == f"tenant: {word}"
    assert (of_a_project.value.field, of_a_tenant.value.field) == ("project", "tenant")


def test_the_longest_name_is_taken() -> None:
    assert Scope.user("x" * 10_240).tenant.external_id == "x" * 10_240


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: Scope.user("u").project("a").project("b"), "project"),
        (lambda: Scope.user("u").session("s").agent("a"), "agent_instance"),
        (lambda: Scope.user("u").agent("a").agent_type("t"), "agent_type"),
        (lambda: Scope(Scope.user("u").tenant, ((MemoryScope.GLOBAL, "g"),)), "global"),
    ],
)
def test_levels_that_do_not_go_from_wide_to_narrow_are_refused(build: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        build()

    assert caught.value.field == field
    assert str(caught.value) == (
        f"{field}: levels go from wide to narrow: project, agent_type, agent, session"
    )


def test_a_scope_can_be_made_of_what_json_has() -> None:
    path: Any = [["project", "checkout"], ("session", "s-9")]

    made = Scope(Tenant("organisation", "acme"), path)  # type: ignore[arg-type] - as JSON has it

    assert made == Scope.organisation("acme").project("checkout").session("s-9")
    assert made.tenant.kind is TenantKind.ORGANISATION
    assert made.path[0] == (MemoryScope.PROJECT, "checkout")
    assert hash(made) == hash(Scope.organisation("acme").project("checkout").session("s-9"))


@pytest.mark.parametrize(
    ("path", "word"),
    [
        (7, "path must be pairs of a level and a name"),
        ("project", "path must be pairs of a level and a name"),
        ((("project",),), "path must be pairs of a level and a name"),
        ((("project", "p", "q"),), "path must be pairs of a level and a name"),
        (
            (("tribe", "t"),),
            (
                "level must be one of global, project, agent_type, agent_instance, session, not "
                "'tribe'"
            ),
        ),
    ],
)
def test_a_path_that_is_none_is_refused(path: Any, word: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Scope(Tenant(TenantKind.PERSON, "u"), path)

    assert (caught.value.field, str(caught.value)) == ("scope", f"scope: the {word}")


def test_a_tenant_of_another_kind_and_a_scope_without_one_are_refused() -> None:
    with pytest.raises(InvalidInput) as of_a_kind:
        Tenant("team", "x")  # type: ignore[arg-type] - that is what is refused
    with pytest.raises(InvalidInput) as of_a_tenant:
        Scope("u-17")  # type: ignore[arg-type] - that is what is refused

    assert str(of_a_kind.value) == "tenant: the kind must be person or organisation, not 'team'"
    assert of_a_kind.value.field == "tenant"
    assert str(of_a_tenant.value) == (
        "tenant: must be a Tenant; use Scope.user('…') or Scope.organisation('…')"
    )
