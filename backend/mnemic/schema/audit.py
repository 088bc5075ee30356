"""Who changed what: ids, digests and reasons, never content."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from mnemic.schema.columns import bounded, created_at, moment, tenant_table

__all__ = ["audit_log", "audit_seals"]

# `transaction_id` tells the sealing worker which rows are older than every running transaction.
audit_log = tenant_table(
    "audit_log",
    sa.Column("scope_id", sa.Uuid),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("subject_kind", sa.Text, nullable=False),
    sa.Column("subject_id", sa.Uuid),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("content_digest", sa.LargeBinary),
    sa.Column("detail", pg.JSONB, nullable=False, server_default=sa.text("'{}'")),
    sa.Column(
        "transaction_id",
        sa.BigInteger,
        nullable=False,
        server_default=sa.text("(pg_current_xact_id()::text)::bigint"),
    ),
    created_at(),
    bounded("audit_log", "subject_kind"),
    sa.Index("audit_log_order_idx", "tenant_id", "transaction_id", "id"),
    sa.Index("audit_log_subject_idx", "tenant_id", "subject_kind", "subject_id"),
)

audit_seals = tenant_table(
    "audit_seals",
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("up_to_transaction", sa.BigInteger, nullable=False),
    sa.Column("row_count", sa.BigInteger, nullable=False),
    sa.Column("previous_hash", sa.LargeBinary, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False),
    moment("sealed_at", nullable=False),
    key=("seq",),
)
