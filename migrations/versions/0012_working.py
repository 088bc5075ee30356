"""Working memory in PostgreSQL: when values expire, what scopes hold, notes.

Safe beside a release that serves: new tables, and columns with constant defaults, which rewrite
nothing and are read by nothing in that release.
"""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

UPGRADE = (
    """
    ALTER TABLE mnemic.working_memory
      ADD COLUMN expiry smallint NOT NULL DEFAULT 0,
      ADD COLUMN bytes integer NOT NULL DEFAULT 0,
      ADD COLUMN deleted boolean NOT NULL DEFAULT false
    """,
    """
    CREATE TABLE mnemic.working_heads (
      tenant_id uuid NOT NULL,
      scope_id uuid NOT NULL,
      keys integer NOT NULL DEFAULT 0,
      bytes bigint NOT NULL DEFAULT 0,
      notes integer NOT NULL DEFAULT 0,
      notes_bytes bigint NOT NULL DEFAULT 0,
      notes_expire_at timestamptz,
      floor bigint NOT NULL DEFAULT 0,
      fence bigint NOT NULL DEFAULT 0,
      restored bigint NOT NULL DEFAULT 0,
      CONSTRAINT working_heads_pkey PRIMARY KEY (tenant_id, scope_id),
      CONSTRAINT working_heads_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id)
    )
    """,
    """
    CREATE TABLE mnemic.working_notes (
      tenant_id uuid NOT NULL,
      scope_id uuid NOT NULL,
      seq bigint NOT NULL,
      text text NOT NULL,
      recorded_at timestamptz NOT NULL DEFAULT now(),
      CONSTRAINT working_notes_pkey PRIMARY KEY (tenant_id, scope_id, seq),
      CONSTRAINT working_notes_scope_id_fkey FOREIGN KEY (tenant_id, scope_id)
        REFERENCES mnemic.scopes (tenant_id, id)
    )
    """,
)
WALL = (
    "ALTER TABLE mnemic.{table} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE mnemic.{table} FORCE ROW LEVEL SECURITY",
    """
    CREATE POLICY tenant_isolation ON mnemic.{table}
      USING (tenant_id = (SELECT nullif(current_setting('mnemic.tenant_id', true), '')::uuid))
      WITH CHECK (tenant_id = (SELECT nullif(current_setting('mnemic.tenant_id', true), '')::uuid))
    """,
    "GRANT SELECT, INSERT, UPDATE, DELETE ON mnemic.{table} TO mnemic_app",
)
TABLES = ("working_heads", "working_notes")


def upgrade() -> None:
    """The tables exist, behind both walls."""
    for statement in UPGRADE:
        op.execute(statement)
    for table in TABLES:
        for statement in WALL:
            op.execute(statement.format(table=table))


def downgrade() -> None:
    """They are gone, and what they held with them; durable values stay."""
    for table in TABLES:
        op.execute(f"DROP TABLE mnemic.{table}")
    # A row that was kept for its version alone would be read as a value by the release before.
    op.execute("ALTER TABLE mnemic.working_memory NO FORCE ROW LEVEL SECURITY")
    op.execute("DELETE FROM mnemic.working_memory WHERE deleted")
    op.execute("ALTER TABLE mnemic.working_memory FORCE ROW LEVEL SECURITY")
    op.execute(
        "ALTER TABLE mnemic.working_memory "
        "DROP COLUMN expiry, DROP COLUMN bytes, DROP COLUMN deleted"
    )
