-- What the score needs to know of the visible scopes: frequencies of the question's stems, totals,
-- who speaks how often, and the newest memories that are not counted yet (read as they are, so that
-- the counts are exact although they are kept outside the writers' transactions).
-- Also the things with several names, of which the question may hold one, and how often the tenant
-- was written to: in the same snapshot, so that it tells whether an answer still holds.
-- Each term is looked up by its whole key: by fewer columns a plan that does not know the tenant
-- takes the index of spellings, three times as slow.
-- :scopes, :terms, :names, :actors_max, :things_max, :pending_max.
-- Index: term_stats_pkey, entities_name_key, *_uncounted_idx, tenant_generations_pkey.
SELECT 'term' AS kind, w.term, CAST(sum(s.documents) AS bigint) AS documents,
       CAST(sum(s.occurrences) AS bigint) AS occurrences
  FROM unnest(CAST(:terms AS text[])) AS w(term)
 CROSS JOIN unnest(CAST(:scopes AS uuid[])) AS o(scope_id)
 CROSS JOIN LATERAL (
   SELECT s.documents, s.occurrences FROM mnemic.term_stats s
    WHERE {tenant:s} AND s.scope_id = o.scope_id AND s.kind = 'term' AND s.term = w.term OFFSET 0) s
 GROUP BY w.term
UNION ALL
SELECT s.kind, s.term, CAST(sum(s.documents) AS bigint), CAST(sum(s.occurrences) AS bigint)
  FROM mnemic.term_stats s
 WHERE {owned:s} AND s.kind IN ('total', 'role')
 GROUP BY s.kind, s.term
UNION ALL
(SELECT s.kind, s.term, CAST(sum(s.documents) AS bigint), CAST(sum(s.occurrences) AS bigint)
   FROM mnemic.term_stats s
  WHERE {owned:s} AND s.kind = 'actor'
  GROUP BY s.kind, s.term
  ORDER BY 3 DESC, 2 LIMIT :actors_max)
UNION ALL
(SELECT 'thing', array_to_string(e.name_key || e.aliases, chr(31)), 0, 0
   FROM mnemic.entities e
  WHERE {owned:e} AND cardinality(e.aliases) > 0
    AND (e.name_key = ANY(CAST(:names AS text[])) OR e.aliases && CAST(:names AS text[]))
  ORDER BY e.id LIMIT :things_max)
UNION ALL
(SELECT 'pending/' || t.role || '/' || t.actor, t.stems, 1, t.stem_count
   FROM mnemic.turns t WHERE {owned:t} AND NOT t.stats_counted LIMIT :pending_max)
UNION ALL
(SELECT 'pending//', e.stems, 1, e.stem_count
   FROM mnemic.episodes e WHERE {owned:e} AND NOT e.stats_counted LIMIT :pending_max)
UNION ALL
(SELECT 'pending//', f.stems, 1, f.stem_count
   FROM mnemic.facts f WHERE {owned:f} AND NOT f.stats_counted LIMIT :pending_max)
UNION ALL
(SELECT 'pending//', p.stems, 1, p.stem_count
   FROM mnemic.procedures p WHERE {owned:p} AND NOT p.stats_counted LIMIT :pending_max)
UNION ALL
SELECT 'generation', '', CAST(coalesce(sum(g.version), 0) AS bigint), 0
  FROM mnemic.tenant_generations g WHERE {tenant:g}
