-- Count memories that are not counted yet, and mark them so, in one statement.
-- :limit rows of each kind, of the whole tenant. Rows that another transaction holds are left for
-- later; the caller holds the tenant's advisory lock, so two counters never meet on a term.
WITH turn AS (
  UPDATE mnemic.turns t SET stats_counted = true
   WHERE {tenant:t} AND t.id IN (SELECT u.id FROM mnemic.turns u
                                  WHERE {tenant:u} AND NOT u.stats_counted
                                  LIMIT :limit FOR UPDATE SKIP LOCKED)
  RETURNING t.id, t.scope_id, t.stems, t.stem_count, t.actor, t.role
), episode AS (
  UPDATE mnemic.episodes e SET stats_counted = true
   WHERE {tenant:e} AND e.id IN (SELECT u.id FROM mnemic.episodes u
                                  WHERE {tenant:u} AND NOT u.stats_counted
                                  LIMIT :limit FOR UPDATE SKIP LOCKED)
  RETURNING e.id, e.scope_id, e.stems, e.stem_count
), fact AS (
  UPDATE mnemic.facts f SET stats_counted = true
   WHERE {tenant:f} AND f.id IN (SELECT u.id FROM mnemic.facts u
                                  WHERE {tenant:u} AND NOT u.stats_counted
                                  LIMIT :limit FOR UPDATE SKIP LOCKED)
  RETURNING f.id, f.scope_id, f.stems, f.stem_count
), procedure AS (
  UPDATE mnemic.procedures p SET stats_counted = true
   WHERE {tenant:p} AND p.id IN (SELECT u.id FROM mnemic.procedures u
                                  WHERE {tenant:u} AND NOT u.stats_counted
                                  LIMIT :limit FOR UPDATE SKIP LOCKED)
  RETURNING p.id, p.scope_id, p.stems, p.stem_count
), memory AS (
  SELECT id, scope_id, stems, stem_count FROM turn
  UNION ALL SELECT id, scope_id, stems, stem_count FROM episode
  UNION ALL SELECT id, scope_id, stems, stem_count FROM fact
  UNION ALL SELECT id, scope_id, stems, stem_count FROM procedure
), word AS (
  SELECT m.id, m.scope_id, w.stem, count(*) AS times
    FROM memory m, LATERAL unnest(string_to_array(m.stems, ' ')) AS w(stem)
   WHERE w.stem <> ''
   GROUP BY m.id, m.scope_id, w.stem
), counts AS (
  SELECT scope_id, 'term' AS kind, stem AS term, count(*) AS documents, sum(times) AS occurrences
    FROM word GROUP BY scope_id, stem
  UNION ALL
  SELECT scope_id, 'total', '', count(*), sum(stem_count) FROM memory GROUP BY scope_id
  UNION ALL
  SELECT scope_id, 'actor', actor, count(*), sum(stem_count) FROM turn GROUP BY scope_id, actor
  UNION ALL
  SELECT scope_id, 'role', role, count(*), sum(stem_count) FROM turn GROUP BY scope_id, role
), landed AS (
  INSERT INTO mnemic.term_stats AS s (tenant_id, scope_id, kind, term, documents, occurrences)
  SELECT :tenant, c.scope_id, c.kind, c.term, c.documents, c.occurrences FROM counts c
   ORDER BY c.scope_id, c.kind, c.term
  ON CONFLICT (tenant_id, scope_id, kind, term)
  DO UPDATE SET documents = s.documents + excluded.documents,
                occurrences = s.occurrences + excluded.occurrences
  RETURNING 1
)
SELECT (SELECT count(*) FROM memory) AS counted, (SELECT count(*) FROM landed) AS terms
