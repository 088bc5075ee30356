"""Note how the vector of a turn was made, and let vectors go with the turns that they took in.

Safe beside a release that serves: a nullable column that nothing in that release reads, an index, a
function that it does not call, and one arm more for `tenants_due`, which it answers with nothing to
do. The column is added in the upgrade's one transaction, and the index is built in it too: until
the upgrade has ended nobody reads or writes turns, for as long as one reading of them and the steps
behind this one take. A concurrent build would wait for a second upgrader, which waits for this one.

No row is written here. What was embedded by the release before, or is while both serve, has no
recipe, and the worker of this one makes it anew; until then its old vector answers.

A short turn's vector holds what was said before it. So the trigger takes it away with any turn that
it may have taken in, in the same statement, whichever release deletes that turn. A step that
deletes turns as the owner has to be free of forced security on `turn_vectors` and `memory_history`
too.
"""

from __future__ import annotations

from alembic import op

from mnemic.store.migrating import without_force

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

COLUMN = "vector_recipe smallint"
# The numbers of the recipe stand in `model/turn_vector.py`; a step keeps those of its time.
STALE = (
    "NOT {t}needs_vector AND {t}word_count <= 20 AND {t}seq > 0"
    " AND {t}vector_recipe IS DISTINCT FROM 1"
)
INDEX = f"turns_stale_idx ON mnemic.turns (tenant_id, recorded_at) WHERE {STALE.format(t='')}"

# Those after each turn that goes, up to the next that goes: what comes behind that one is looked at
# from there. So no dead row is passed twice, however many go at once.
FORGET = """
    CREATE FUNCTION mnemic.forget_windows() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, mnemic, pg_temp AS $$
    DECLARE
      held uuid[];
      one uuid;
    BEGIN
      FOR one IN SELECT DISTINCT g.tenant_id FROM gone g LOOP
        SELECT array_agg(DISTINCT a.id) INTO held
          FROM (SELECT o.session_id, o.seq,
                       lead(o.seq, 1, 2147483647) OVER (PARTITION BY o.session_id
                                                        ORDER BY o.seq) AS until
                  FROM gone o WHERE o.tenant_id = one) g
         CROSS JOIN LATERAL (SELECT t.id, t.word_count, t.vector_recipe FROM mnemic.turns t
                              WHERE t.tenant_id = one AND t.session_id = g.session_id
                                AND t.seq > g.seq AND t.seq < g.until ORDER BY t.seq LIMIT 2) a
         WHERE a.word_count <= 20 AND a.vector_recipe IS NOT NULL;
        IF held IS NOT NULL THEN
          UPDATE mnemic.turns t
             SET needs_vector = true, vector_recipe = NULL,
                 embedded_at = CASE WHEN t.needs_vector THEN t.embedded_at
                                    ELSE coalesce(t.embedded_at, t.recorded_at) END
           WHERE t.tenant_id = one AND t.id = ANY (held);
          DELETE FROM mnemic.turn_vectors v WHERE v.tenant_id = one AND v.memory_id = ANY (held);
          DELETE FROM mnemic.memory_history h
           WHERE h.tenant_id = one AND h.memory_id = ANY (held);
        END IF;
      END LOOP;
      RETURN NULL;
    END $$
"""
TRIGGER = """
    CREATE TRIGGER turns_forget_windows AFTER DELETE ON mnemic.turns
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION mnemic.forget_windows()
"""

SIGNATURE = "vectors_due(bigint)"
COUNT = """
    CREATE FUNCTION mnemic.vectors_due("limit" bigint)
    RETURNS TABLE (missing bigint, stale bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, mnemic, pg_temp
    SET plan_cache_mode = force_custom_plan
    BEGIN ATOMIC
      SELECT (SELECT count(*) FROM ({missing} LIMIT vectors_due."limit") m),
             (SELECT count(*) FROM (SELECT FROM mnemic.turns w WHERE {stale}
                                     LIMIT vectors_due."limit") s);
    END
"""

# As 0014 has them.
_TENANTS_WITH = """
    SELECT a.tenant_id FROM (
      WITH RECURSIVE found (tenant_id) AS (
        (SELECT w.tenant_id FROM mnemic.{table} w WHERE {pending}
          ORDER BY w.tenant_id LIMIT 1)
        UNION ALL
        SELECT (SELECT w.tenant_id FROM mnemic.{table} w
                 WHERE w.tenant_id > f.tenant_id AND {pending}
                 ORDER BY w.tenant_id LIMIT 1)
          FROM found f WHERE f.tenant_id IS NOT NULL)
      SELECT f.tenant_id FROM found f WHERE f.tenant_id IS NOT NULL) a
     WHERE tenants_due.job = '{job}'
"""
_DUE = """
    CREATE OR REPLACE FUNCTION mnemic.tenants_due(job text, "limit" int, due_before timestamptz)
    RETURNS TABLE (tenant_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, mnemic, pg_temp
    SET plan_cache_mode = force_custom_plan
    BEGIN ATOMIC
      SELECT d.tenant_id FROM (SELECT DISTINCT u.tenant_id FROM ({arms}) u) d
       ORDER BY hashtextextended(d.tenant_id::text,
                                 (extract(epoch FROM statement_timestamp()) * 1000)::bigint)
       LIMIT tenants_due."limit";
    END
"""
_KINDS = ("turns", "episodes", "facts", "procedures")
_IDLE = "w.state = 'active' AND w.last_active_at < tenants_due.due_before"
BEFORE = (
    ("end_idle_sessions", "sessions", _IDLE),
    *(("embed_missing", kind, "w.needs_vector") for kind in _KINDS),
    *(("count_terms", kind, "NOT w.stats_counted") for kind in _KINDS),
    ("expire", "working_memory", "w.expires_at < tenants_due.due_before"),
    ("expire", "working_heads", "w.notes_expire_at < tenants_due.due_before"),
)
AFTER = (*BEFORE, ("embed_missing", "turns", STALE.format(t="w.")))

# The release before forgets a turn without the vectors that took it in, so none may be left to it.
DROPPED = """
    DELETE FROM mnemic.turn_vectors v USING mnemic.turns t
     WHERE t.tenant_id = v.tenant_id AND t.id = v.memory_id
       AND t.vector_recipe IS NOT NULL AND t.word_count <= 20 AND t.seq > 0
"""
AGAIN = """
    UPDATE mnemic.turns
       SET needs_vector = true, embedded_at = coalesce(embedded_at, recorded_at)
     WHERE vector_recipe IS NOT NULL AND word_count <= 20 AND seq > 0
"""


def upgrade() -> None:
    """What was embedded otherwise is due, can be counted, and goes with what it took in."""
    op.execute(f"ALTER TABLE mnemic.turns ADD COLUMN {COLUMN}")
    op.execute(f"CREATE INDEX {INDEX}")
    op.execute(FORGET)
    op.execute("REVOKE ALL ON FUNCTION mnemic.forget_windows() FROM PUBLIC")
    op.execute(TRIGGER)
    op.execute("GRANT SELECT (seq, word_count, vector_recipe) ON mnemic.turns TO mnemic_lookup")
    missing = " UNION ALL ".join(
        f"SELECT FROM mnemic.{kind} w WHERE w.needs_vector" for kind in _KINDS
    )
    counted = COUNT.format(missing=missing, stale=STALE.format(t="w."))
    _as_lookup(
        _due(AFTER),
        counted,
        f"REVOKE ALL ON FUNCTION mnemic.{SIGNATURE} FROM PUBLIC",
        f"GRANT EXECUTE ON FUNCTION mnemic.{SIGNATURE} TO mnemic_app",
    )


def downgrade() -> None:
    """No vector holds more than its own turn; those that did are due."""
    _as_lookup(_due(BEFORE), f"DROP FUNCTION mnemic.{SIGNATURE}")
    op.execute("REVOKE SELECT (seq, word_count, vector_recipe) ON mnemic.turns FROM mnemic_lookup")
    op.execute("DROP TRIGGER turns_forget_windows ON mnemic.turns")
    op.execute("DROP FUNCTION mnemic.forget_windows()")
    op.execute("DROP INDEX mnemic.turns_stale_idx")
    with without_force(op, "turns", "turn_vectors"):
        op.execute(DROPPED)
        op.execute(AGAIN)
    op.execute("ALTER TABLE mnemic.turns DROP COLUMN vector_recipe")


def _due(due: tuple[tuple[str, str, str], ...]) -> str:
    arms = (_TENANTS_WITH.format(job=job, table=table, pending=row) for job, table, row in due)
    return _DUE.format(arms=" UNION ALL ".join(arms))


def _as_lookup(*statements: str) -> None:
    # Its owner alone may replace a function, and needs CREATE for the moment.
    op.execute("GRANT CREATE ON SCHEMA mnemic TO mnemic_lookup")
    op.execute("SET LOCAL ROLE mnemic_lookup")
    for statement in statements:
        op.execute(statement)
    # Not RESET: a superuser migrates as the owner, and would make the rest as himself.
    op.execute("SET LOCAL ROLE mnemic_owner")
    op.execute("REVOKE CREATE ON SCHEMA mnemic FROM mnemic_lookup")
