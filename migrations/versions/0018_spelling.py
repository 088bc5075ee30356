"""Find the words of a scope that are spelt nearly as one that nobody wrote.

Safe beside a release that serves: an index and a function that nothing in that release calls. The
index is built in the step's transaction, and blocks those who count words meanwhile: a concurrent
build would wait for a second upgrader, which waits for this one. Counting runs beside the writers,
and is done later. Row-level security keeps `%` from its index as it does `@@`, so the function
belongs to `mnemic_lookup`, which may read just the counts of words.
"""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

INDEX = (
    "term_stats_spelling_idx ON mnemic.term_stats USING gin (tenant_id, term gin_trgm_ops)"
    " WHERE kind = 'term'"
)
SIGNATURE = "similar_terms(text[], uuid[], int)"
FUNCTION = """
    CREATE FUNCTION mnemic.similar_terms(words text[], scopes uuid[], n int)
    RETURNS TABLE (word text, term text, alike real, documents bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, mnemic, pg_temp
    SET plan_cache_mode = force_custom_plan
    SET pg_trgm.similarity_threshold = 0.2
    BEGIN ATOMIC
      SELECT w.word, m.term, m.alike, m.documents
        FROM unnest(similar_terms.words) AS w(word)
       CROSS JOIN LATERAL (
         SELECT s.term, similarity(s.term, w.word) AS alike, sum(s.documents)::bigint AS documents
           FROM mnemic.term_stats s
          WHERE s.tenant_id = nullif(current_setting('mnemic.tenant_id', true), '')::uuid
            AND s.scope_id = ANY (similar_terms.scopes) AND s.kind = 'term' AND s.documents > 0
            AND s.term % w.word
          GROUP BY s.term
          ORDER BY 2 DESC, 3 DESC, 1 LIMIT n) m;
    END
"""


def upgrade() -> None:
    """The serving role may ask for words that are spelt alike."""
    op.execute(f"CREATE INDEX {INDEX}")
    op.execute(
        "GRANT SELECT (tenant_id, scope_id, kind, term, documents) ON mnemic.term_stats"
        " TO mnemic_lookup"
    )
    op.execute(
        "CREATE POLICY lookup_reader ON mnemic.term_stats FOR SELECT TO mnemic_lookup USING (true)"
    )
    # A function's new owner needs CREATE for the moment in which it becomes the owner.
    op.execute("GRANT CREATE ON SCHEMA mnemic TO mnemic_lookup")
    op.execute(FUNCTION)
    op.execute(f"REVOKE ALL ON FUNCTION mnemic.{SIGNATURE} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION mnemic.{SIGNATURE} TO mnemic_app")
    op.execute(f"ALTER FUNCTION mnemic.{SIGNATURE} OWNER TO mnemic_lookup")
    op.execute("REVOKE CREATE ON SCHEMA mnemic FROM mnemic_lookup")


def downgrade() -> None:
    """It is gone, with its index and the right to read the counts."""
    op.execute(f"DROP FUNCTION mnemic.{SIGNATURE}")
    op.execute("DROP POLICY lookup_reader ON mnemic.term_stats")
    op.execute("REVOKE ALL ON mnemic.term_stats FROM mnemic_lookup")
    op.execute("DROP INDEX mnemic.term_stats_spelling_idx")
