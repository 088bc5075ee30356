"""Find the answers that quote a memory, when it is forgotten, by that memory.

The table is safe beside a release that serves: nothing there reads it. But that release does not
say in it what it answers meanwhile, and takes out of the answers of a later one no more than their
notes: where memories are forgotten, it ends before the later one begins to serve. What was answered
until here is looked through once. Row-level security is lifted from the owner for that.
"""

from __future__ import annotations

from alembic import op

from mnemic.store.migrating import without_force

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


TABLE = (
    """
    CREATE TABLE mnemic.answered_memories (
      tenant_id uuid NOT NULL,
      key_digest bytea NOT NULL,
      memory_id uuid NOT NULL,
      CONSTRAINT answered_memories_pkey PRIMARY KEY (tenant_id, key_digest, memory_id),
      CONSTRAINT answered_memories_key_digest_fkey FOREIGN KEY (tenant_id, key_digest)
        REFERENCES mnemic.idempotency_keys (tenant_id, key_digest) ON DELETE CASCADE,
      CONSTRAINT answered_memories_key_digest_bytes_check CHECK (octet_length(key_digest) <= 64)
    )
    """,
    """
    CREATE INDEX answered_memories_memory_idx
      ON mnemic.answered_memories (tenant_id, memory_id)
    """,
)
# Before it has a wall: no tenant is set here.
FILL = """
    INSERT INTO mnemic.answered_memories (tenant_id, key_digest, memory_id)
    SELECT k.tenant_id, k.key_digest, CAST(m.id AS uuid)
      FROM mnemic.idempotency_keys k
     CROSS JOIN LATERAL (SELECT k.answer ->> 'id'
                          UNION
                         SELECT jsonb_array_elements_text(k.answer -> 'also')) AS m(id)
     WHERE jsonb_typeof(k.answer) = 'object' AND k.answer @? '$.notes[0]'
"""
WALL = (
    "ALTER TABLE mnemic.answered_memories ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE mnemic.answered_memories FORCE ROW LEVEL SECURITY",
    """
    CREATE POLICY tenant_isolation ON mnemic.answered_memories
      USING (tenant_id = (SELECT nullif(current_setting('mnemic.tenant_id', true), '')::uuid))
      WITH CHECK (tenant_id = (SELECT nullif(current_setting('mnemic.tenant_id', true), '')::uuid))
    """,
    "GRANT SELECT, INSERT, DELETE ON mnemic.answered_memories TO mnemic_app",
)
# A release before this one would not take them out when their memories are forgotten.
UNQUOTE = """
    UPDATE mnemic.idempotency_keys SET answer = answer - 'memory'
     WHERE jsonb_typeof(answer) = 'object' AND answer -> 'memory' IS NOT NULL
"""


def upgrade() -> None:
    """What quotes a memory is found from the memory; what was answered until now as well."""
    for statement in TABLE:
        op.execute(statement)
    with without_force(op, "idempotency_keys"):
        op.execute(FILL)
    for statement in WALL:
        op.execute(statement)


def downgrade() -> None:
    """It is gone, and so are the memories that answers held beside their receipts."""
    with without_force(op, "idempotency_keys"):
        op.execute(UNQUOTE)
    op.execute("DROP TABLE mnemic.answered_memories")
