"""The few functions that look past the policies, and the role that they belong to.

Safe beside a release that serves: new functions only. Row-level security keeps `@@` from its
index, for the operator is not leak-proof; and two look-ups happen before a tenant is known. Each
function belongs to `mnemic_lookup`, which may read just the columns named here and write nothing.
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Read by `lexical*` (tsv, scope), `tenants_due` (what is pending) and `principal_of`.
_WORDS = "tenant_id, id, scope_id, tsv, archived_at, recorded_at, needs_vector, stats_counted"
READERS = {
    "api_keys": "tenant_id, id, scope_id, rights, key_digest, expires_at, revoked_at",
    "episodes": _WORDS,
    "facts": f"{_WORDS}, status",
    "procedures": f"{_WORDS}, status",
    "sessions": "tenant_id, state, last_active_at",
    "turns": f"{_WORDS}, actor_id",
}

_READER = "CREATE POLICY lookup_reader ON mnemic.{table} FOR SELECT TO mnemic_lookup USING (true)"

# The tenant is compared bare: inside `(SELECT …)` the planner cannot see how large it is. The plan
# is made anew for each call, as a kept one would not know the tenant or the words either.
_HEAD = """
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, mnemic, pg_temp
    SET plan_cache_mode = force_custom_plan
"""
_LEXICAL = """
    CREATE FUNCTION mnemic.{name}(match_q tsquery, rank_q tsquery, scopes uuid[], {extra}n int)
    RETURNS TABLE (id uuid, rank real) {head}
    BEGIN ATOMIC
      SELECT m.id, ts_rank(m.tsv, rank_q) FROM mnemic.{table} m
       WHERE m.tenant_id = nullif(current_setting('mnemic.tenant_id', true), '')::uuid
         AND m.scope_id = ANY (scopes) AND m.tsv @@ match_q AND {live}
       ORDER BY 2 DESC, 1 LIMIT n;
    END
"""
_SEEN = "m.archived_at IS NULL"
_LIVE = "m.status = 'live' AND m.archived_at IS NULL"


def _lexical(name: str, table: str, live: str, extra: str = "") -> str:
    return _LEXICAL.format(name=name, table=table, live=live, extra=extra, head=_HEAD)


# A digest of 256 random bits is unique but for a forged row; the caller refuses two.
_PRINCIPAL = """
    CREATE FUNCTION mnemic.principal_of(key_digest bytea)
    RETURNS TABLE (tenant_id uuid, id uuid, scope_id uuid, rights text[], expires_at timestamptz)
    {head}
    BEGIN ATOMIC
      SELECT k.tenant_id, k.id, k.scope_id, k.rights, k.expires_at FROM mnemic.api_keys k
       WHERE k.key_digest = principal_of.key_digest AND k.revoked_at IS NULL;
    END
"""

# Tenants that have such a row. One scan finds each: it begins behind the tenant before and ends at
# the first such row, so that no other row of a tenant that has one is read, but whatever lies
# between in the index is, as are the rows of tenants that have none.
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
# In another order each time, so that no tenant stands behind the same ones for ever.
_DUE = """
    CREATE FUNCTION mnemic.tenants_due(job text, "limit" int, due_before timestamptz)
    RETURNS TABLE (tenant_id uuid) {head}
    BEGIN ATOMIC
      SELECT d.tenant_id FROM (SELECT DISTINCT u.tenant_id FROM ({arms}) u) d
       ORDER BY hashtextextended(d.tenant_id::text,
                                 (extract(epoch FROM statement_timestamp()) * 1000)::bigint)
       LIMIT tenants_due."limit";
    END
"""
_KINDS = ("turns", "episodes", "facts", "procedures")
_ARMS = (
    (
        "end_idle_sessions",
        "sessions",
        "w.state = 'active' AND w.last_active_at < tenants_due.due_before",
    ),
    *(("embed_missing", kind, "w.needs_vector") for kind in _KINDS),
    *(("count_terms", kind, "NOT w.stats_counted") for kind in _KINDS),
)


def _due() -> str:
    arms = (
        _TENANTS_WITH.format(job=job, table=table, pending=pending) for job, table, pending in _ARMS
    )
    return _DUE.format(head=_HEAD, arms=" UNION ALL ".join(arms))


FUNCTIONS = {
    "lexical(tsquery, tsquery, uuid[], int)": _lexical("lexical", "turns", _SEEN),
    "lexical_actor(tsquery, tsquery, uuid[], uuid, int)": _lexical(
        "lexical_actor", "turns", f"m.actor_id = lexical_actor.actor AND {_SEEN}", "actor uuid, "
    ),
    "lexical_episodes(tsquery, tsquery, uuid[], int)": _lexical(
        "lexical_episodes", "episodes", _SEEN
    ),
    "lexical_facts(tsquery, tsquery, uuid[], int)": _lexical("lexical_facts", "facts", _LIVE),
    "lexical_procedures(tsquery, tsquery, uuid[], int)": _lexical(
        "lexical_procedures", "procedures", _LIVE
    ),
    "principal_of(bytea)": _PRINCIPAL.format(head=_HEAD),
    "tenants_due(text, int, timestamptz)": _due(),
}


def upgrade() -> None:
    """The serving role may call the functions, and they see what their role may read."""
    for table, columns in READERS.items():
        op.execute(f"GRANT SELECT ({columns}) ON mnemic.{table} TO mnemic_lookup")
        op.execute(_READER.format(table=table))
    # A function's new owner needs CREATE for the moment in which it becomes the owner.
    op.execute("GRANT CREATE ON SCHEMA mnemic TO mnemic_lookup")
    for signature, statement in FUNCTIONS.items():
        op.execute(statement)
        op.execute(f"REVOKE ALL ON FUNCTION mnemic.{signature} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION mnemic.{signature} TO mnemic_app")
        op.execute(f"ALTER FUNCTION mnemic.{signature} OWNER TO mnemic_lookup")
    op.execute("REVOKE CREATE ON SCHEMA mnemic FROM mnemic_lookup")


def downgrade() -> None:
    """The functions are gone, and their role reads nothing."""
    for signature in FUNCTIONS:
        op.execute(f"DROP FUNCTION mnemic.{signature}")
    for table in READERS:
        op.execute(f"DROP POLICY lookup_reader ON mnemic.{table}")
        op.execute(f"REVOKE ALL ON mnemic.{table} FROM mnemic_lookup")
