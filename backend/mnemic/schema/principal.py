"""Who may call: keys by digest, and rights on scopes."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import bounded, created_at, moment, scoped_table

__all__ = ["api_keys", "grants"]

api_keys = scoped_table(
    "api_keys",
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("key_digest", sa.LargeBinary, nullable=False),
    sa.Column("rights", pg.ARRAY(sa.Text), nullable=False),
    created_at(),
    moment("expires_at"),
    moment("revoked_at"),
    sa.CheckConstraint("octet_length(key_digest) = 32", name="api_keys_key_digest_check"),
    # Looked up before a tenant is known, by the definer function alone; so it cannot be unique.
    sa.Index("api_keys_digest_idx", "key_digest"),
)

grants = scoped_table(
    "grants",
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("principal_key", sa.Text, nullable=False),
    sa.Column("rights", pg.ARRAY(sa.Text), nullable=False),
    created_at(),
    moment("revoked_at"),
    bounded("grants", "principal_key"),
    sa.UniqueConstraint("tenant_id", "scope_id", "principal_key", name="grants_principal_key"),
)
