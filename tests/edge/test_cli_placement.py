"""`mnemic db promote`, `demote` and `isolate`, on servers that are set."""

from __future__ import annotations

from typing import Any


def test_a_small_tenant_is_left_as_it_is(mnemic: Any) -> None:
    mnemic("remember", "Deploys are frozen on Fridays")

    every = mnemic("db", "promote", "--json")
    one = mnemic("db", "promote", "--user", mnemic.environment["MEM_USER"])
    none = mnemic("db", "demote", "--tenant", "00000000-0000-0000-0000-000000000001", "--json")

    assert every.document == {"tenants": 0, "done": 0, "failed": 0}
    assert (one.code, one.out) == (0, "Nothing to do.\n")
    assert none.document == {"changes": []}


def test_a_large_tenant_is_promoted_and_demoted(mnemic: Any) -> None:
    mnemic.environment["MEM_RECALL__EXACT_SCAN_ROWS_MAX"] = "1"
    for text in ("It rains", "It snows"):
        mnemic("remember", text, "--type", "episodic")
    user = mnemic.environment["MEM_USER"]

    up = mnemic("db", "promote", "--user", user, "--json").document
    down = mnemic("db", "demote", "--user", user)

    [change] = up["changes"]
    assert (change["kind"], change["what"]) == ("episode", "promoted")
    assert down.out == f"demoted: the episode vectors of tenant {change['tenant']}\n"


def test_a_tenant_is_moved_and_found_in_either_place(mnemic: Any) -> None:
    mnemic("remember", "Deploys are frozen on Fridays")

    apart = mnemic("db", "isolate", "dedicated", "--json")
    found = mnemic("recall", "deploys", "--json").document
    back = mnemic("db", "isolate", "shared", "--lock-seconds", "30")

    assert (apart.document["isolation"], apart.document["moved"]) == ("dedicated", 4)
    assert len(found["hits"]) == 1
    assert back.out == "4 tables moved; the tenant's vectors are shared.\n"


def test_a_tenant_that_is_named_twice_or_wrongly_or_not_at_all_is_refused(mnemic: Any) -> None:
    refused = [
        mnemic("db", "demote", "--json"),
        mnemic("db", "promote", "--tenant", "acme", "--json"),
        mnemic("db", "promote", "--tenant", "x", "--user", "u", "--json"),
        mnemic("db", "isolate", "alone", "--json"),
    ]

    assert [one.code for one in refused] == [2, 2, 2, 2]
    assert [one.document["error"]["field"] for one in refused] == [*["tenant"] * 3, "isolation"]
