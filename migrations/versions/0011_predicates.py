"""The predicates that hold one value at a time, and those known to hold many.

Safe beside a release that serves: new rows in a table without a tenant, read when a fact is kept.
A name that ends in `_` stands for a family: `favourite_` for `favourite_editor`. What is not
registered holds many values.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

PREDICATES = {
    "single": {
        "birthday": "identity",
        "deadline": "constraint",
        "favourite_": "preference",
        "lives_in": "identity",
        "name": "identity",
        "prefers_language": "preference",
        "time_zone": "identity",
        "works_at": "identity",
    },
    "multi": {
        "decided": "decision",
        "decided_against": "decision",
        "dislikes": "preference",
        "likes": "preference",
        "must": "constraint",
        "must_not": "constraint",
        "noted": "note",
        "prefers": "preference",
        "requires": "constraint",
        "speaks": "identity",
        "uses": "use",
        "wants": "preference",
        "works_as": "identity",
    },
}

_table = sa.table(
    "predicates",
    sa.column("name", sa.Text),
    sa.column("cardinality", sa.Text),
    sa.column("category", sa.Text),
    schema="mnemic",
)


def upgrade() -> None:
    """Each of the predicates is registered."""
    rows = [
        {"name": name, "cardinality": cardinality, "category": category}
        for cardinality, names in PREDICATES.items()
        for name, category in names.items()
    ]
    op.bulk_insert(_table, rows)


def downgrade() -> None:
    """None of them is; those that a host registered stay."""
    names = [name for known in PREDICATES.values() for name in known]
    op.execute(_table.delete().where(_table.c.name.in_(names)))
