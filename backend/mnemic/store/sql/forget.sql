-- Delete memories of exactly one scope, with their vectors and evidence (by cascade), and take
-- their words out of the counts. __noun__ is replaced for each kind of memory; __turn__ counts who
-- spoke. :scope, :ids.  Index: primary key.
WITH gone AS (
  DELETE FROM mnemic.__noun__s m
   WHERE {tenant:m} AND m.scope_id = :scope AND m.id = ANY(CAST(:ids AS uuid[]))
  RETURNING m.*
), memory AS (
  SELECT g.id, g.stems, g.stem_count FROM gone g WHERE g.stats_counted
), word AS (
  SELECT m.id, w.stem, count(*) AS times
    FROM memory m, LATERAL unnest(string_to_array(m.stems, ' ')) AS w(stem)
   WHERE w.stem <> '' GROUP BY m.id, w.stem
), counts AS (
  SELECT 'term' AS kind, stem AS term, count(*) AS documents, sum(times) AS occurrences
    FROM word GROUP BY stem
  UNION ALL
  SELECT 'total', '', count(*), coalesce(sum(stem_count), 0) FROM memory
  __turn__
), landed AS (
  UPDATE mnemic.term_stats s
     SET documents = greatest(0, s.documents - c.documents),
         occurrences = greatest(0, s.occurrences - c.occurrences)
    FROM counts c
   WHERE {tenant:s} AND s.scope_id = :scope AND s.kind = c.kind AND s.term = c.term
  RETURNING s.kind, s.term, s.documents
)
-- The ids, and the words that are in no memory any more: they must not outlive the text.
SELECT g.id, NULL AS kind, NULL AS term FROM gone g
 UNION ALL
SELECT NULL, l.kind, l.term FROM landed l WHERE l.documents = 0
