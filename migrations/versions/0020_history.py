"""Keep what a memory was before it changed, and count the writes of each tenant.

The first lets a past moment be asked, the second tells whether an answer of before still holds.

Safe beside a release that serves: new tables, nullable columns that nothing in that release reads,
and triggers that write to the new tables alone, with the rights of whoever changes the memory. Of
what changed before this step only the retirement is known.

The release before does not count its writes: while both serve, what this one has been answered may
be as old as `cache.seconds`, and no older.

The history of a memory goes with it: what was forgotten is in no past either. The words of an
episode are not kept, for they change only when something of them is forgotten.
"""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

TABLES = (
    """
    CREATE TABLE mnemic.memory_history (
      tenant_id uuid NOT NULL,
      id uuid NOT NULL,
      memory_id uuid NOT NULL,
      place integer NOT NULL,
      known_until timestamptz NOT NULL,
      before jsonb NOT NULL,
      CONSTRAINT memory_history_pkey PRIMARY KEY (tenant_id, id)
    )
    """,
    """
    CREATE UNIQUE INDEX memory_history_place_key
        ON mnemic.memory_history (tenant_id, memory_id, place)
    """,
    """
    CREATE INDEX memory_history_until_idx
        ON mnemic.memory_history (tenant_id, known_until, memory_id)
    """,
    """
    CREATE TABLE mnemic.past_vectors (
      tenant_id uuid NOT NULL,
      change_id uuid NOT NULL,
      model_id smallint NOT NULL,
      embedding halfvec NOT NULL,
      CONSTRAINT past_vectors_pkey PRIMARY KEY (tenant_id, change_id, model_id),
      CONSTRAINT past_vectors_change_id_fkey FOREIGN KEY (tenant_id, change_id)
        REFERENCES mnemic.memory_history (tenant_id, id) ON DELETE CASCADE,
      CONSTRAINT past_vectors_model_id_fkey FOREIGN KEY (model_id)
        REFERENCES mnemic.embedding_models (id)
    )
    """,
    """
    CREATE TABLE mnemic.tenant_generations (
      tenant_id uuid NOT NULL,
      slot smallint NOT NULL,
      version bigint NOT NULL,
      CONSTRAINT tenant_generations_pkey PRIMARY KEY (tenant_id, slot)
    ) WITH (fillfactor = 50)
    """,
)
NEW = ("memory_history", "past_vectors", "tenant_generations")
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
COLUMNS = (
    *(
        f"ALTER TABLE mnemic.{table} {{verb}} embedded_at {{type}}"
        for table in ("turns", "episodes", "facts", "procedures")
    ),
    "ALTER TABLE mnemic.sessions {verb} moved_at {type}",
    "ALTER TABLE mnemic.entities {verb} updated_at {type}",
)

# What changes of a memory, and is to be known of any moment. `updated_at` tells when it changed.
TRACKED = {
    "entities": "aliases",
    "episodes": "scope_id, importance_score, archived_at",
    "facts": (
        "scope_id, confidence, ease, last_reinforced, reinforcement_count, valid_to, retired_at,"
        " status, status_reason, pinned, verified_at, verification, archived_at"
    ),
    "procedures": (
        "scope_id, name, task_type, trigger_pattern, steps, version, preconditions,"
        " avoid_conditions, success_count, failure_count, last_used, status, retired_at,"
        " archived_at, metadata, tags, trust, source, stems, stem_count, word_count, tsv,"
        " updated_at"
    ),
}
FORGETTING = ("entities", "episodes", "facts", "procedures", "turns")

KEEP = """
    CREATE FUNCTION mnemic.keep_history() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, mnemic, pg_temp AS $$
    DECLARE
      told jsonb := to_jsonb(NEW);
      was jsonb;
      turn integer;
    BEGIN
      SELECT jsonb_object_agg(o.key, o.value) INTO was FROM jsonb_each(to_jsonb(OLD)) AS o
       WHERE o.key = ANY (TG_ARGV) AND o.value IS DISTINCT FROM told -> o.key;
      IF was IS NOT NULL AND was - 'updated_at' <> '{}' THEN
        SELECT coalesce(max(h.place), 0) + 1 INTO turn FROM mnemic.memory_history h
         WHERE h.tenant_id = OLD.tenant_id AND h.memory_id = OLD.id;
        INSERT INTO mnemic.memory_history (tenant_id, id, memory_id, place, known_until, before)
        VALUES (OLD.tenant_id, md5(concat_ws(';', OLD.id, turn))::uuid, OLD.id, turn,
                coalesce(NEW.updated_at, now()), was);
      END IF;
      RETURN NULL;
    END $$
"""
FORGET = """
    CREATE FUNCTION mnemic.forget_history() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, mnemic, pg_temp AS $$
    BEGIN
      DELETE FROM mnemic.memory_history h
       WHERE h.tenant_id = OLD.tenant_id AND h.memory_id = OLD.id;
      RETURN NULL;
    END $$
"""


def upgrade() -> None:
    """What changes from now on can be asked of any moment between."""
    for statement in TABLES:
        op.execute(statement)
    for table in NEW:
        for statement in WALL:
            op.execute(statement.format(table=table))
    for statement in COLUMNS:
        op.execute(statement.format(verb="ADD COLUMN", type="timestamptz"))
    for name, statement in {"keep_history": KEEP, "forget_history": FORGET}.items():
        op.execute(statement)
        op.execute(f"REVOKE ALL ON FUNCTION mnemic.{name}() FROM PUBLIC")
    for table, columns in TRACKED.items():
        names = ", ".join(f"'{name.strip()}'" for name in columns.split(","))
        op.execute(
            f"CREATE TRIGGER {table}_keep_history AFTER UPDATE OF {columns} ON mnemic.{table} "
            f"FOR EACH ROW EXECUTE FUNCTION mnemic.keep_history({names})"
        )
    for table in FORGETTING:
        op.execute(
            f"CREATE TRIGGER {table}_forget_history AFTER DELETE ON mnemic.{table} "
            "FOR EACH ROW EXECUTE FUNCTION mnemic.forget_history()"
        )


def downgrade() -> None:
    """The past cannot be asked any more."""
    for table in TRACKED:
        op.execute(f"DROP TRIGGER {table}_keep_history ON mnemic.{table}")
    for table in FORGETTING:
        op.execute(f"DROP TRIGGER {table}_forget_history ON mnemic.{table}")
    for name in ("keep_history", "forget_history"):
        op.execute(f"DROP FUNCTION mnemic.{name}()")
    for table in reversed(NEW):
        op.execute(f"DROP TABLE mnemic.{table}")
    for statement in COLUMNS:
        op.execute(statement.format(verb="DROP COLUMN", type=""))
