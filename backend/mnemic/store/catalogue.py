"""Whether a database keeps the rules that hold for every table and function of the schema.

Everything is enumerated from the system catalogue, so a table that is added later is held to the
rules without being named here. Any role can ask. The rules are numbered as in the data model.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from mnemic.schema import TENANTLESS_TABLES

__all__ = ["DEFINER_FUNCTIONS", "rules", "violations"]

DEFINER_FUNCTIONS = frozenset(
    {
        "lexical",
        "lexical_actor",
        "lexical_episodes",
        "lexical_facts",
        "lexical_procedures",
        "principal_of",
        "similar_terms",
        "tenants_beyond",
        "tenants_due",
        "vectors_due",
    }
)
"""The only functions that may run with another role's rights: they look past the policies."""

_RULE = re.compile(r"^--! (.+)\n((?:(?!--).*\n)+)", re.MULTILINE)


async def violations(connection: Any) -> list[str]:
    """What breaks a rule, one line each: the object, then what is wrong; empty if all hold."""
    broken = await connection.fetch(
        _statement(), sorted(TENANTLESS_TABLES), sorted(DEFINER_FUNCTIONS)
    )
    sentences = rules()
    return [f"{row['shown']} {sentences[row['rule']]}" for row in broken]


@cache
def rules() -> tuple[str, ...]:
    """The rules, as the words that follow the name of an object that breaks one."""
    return tuple(sentence for sentence, _query in _RULE.findall(_text()))


@cache
def _statement() -> str:
    common, _separator, _rest = _text().partition("--!")
    arms = (
        f"SELECT {place} AS rule, shown FROM ({query.strip()}) AS broken (shown)"
        for place, (_sentence, query) in enumerate(_RULE.findall(_text()))
    )
    return f"{common}\n{' UNION ALL '.join(arms)}\nORDER BY rule, shown"


@cache
def _text() -> str:
    return (files("mnemic.store") / "sql" / "catalogue.sql").read_text(encoding="utf-8")
