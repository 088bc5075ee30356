-- Purpose: what in the schema breaks a rule that holds for every table and function.
-- Parameters: $1 the tables without a tenant, $2 the definer functions; the only lists there are.
-- Index: none; the system catalogue alone is read, so any role may ask.
-- Each query after the common part names the objects of which the line above it is true.

WITH given AS (SELECT $1::text[] AS tenantless, $2::text[] AS definers),
space AS (SELECT oid, nspowner, nspacl FROM pg_namespace WHERE nspname = 'mnemic'),
relations AS (
  SELECT c.*, 'mnemic.' || c.relname AS shown FROM pg_class c, space
   WHERE c.relnamespace = space.oid),
tables AS (
  SELECT r.*, EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = r.oid
                         AND a.attname = 'tenant_id' AND NOT a.attisdropped) AS has_tenant,
         -- what is to become a partition of one tenant, or was one
         NOT r.relispartition AND r.relname ~ '_vectors_[0-9a-f]{32}$' AS is_moving
    FROM relations r WHERE r.relkind IN ('r', 'p')),
columns AS (
  SELECT t.oid, t.shown || '.' || a.attname AS shown, t.has_tenant, a.attname AS name, a.attnum,
         a.attnotnull, a.atthasdef, a.attidentity, a.attacl, a.atttypmod, y.typname AS type,
         pg_get_expr(d.adbin, d.adrelid) AS standard
    FROM tables t
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type y ON y.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum),
indexes AS (
  SELECT i.*, 'mnemic.' || k.relname AS shown, t.has_tenant, t.relname AS table_name,
         k.relname AS name, m.amname AS method,
         EXISTS (SELECT FROM columns c WHERE c.oid = i.indrelid AND c.name = 'tenant_id'
                    AND c.attnum = i.indkey[0]) AS starts_with_tenant
    FROM pg_index i JOIN tables t ON t.oid = i.indrelid
    JOIN pg_class k ON k.oid = i.indexrelid JOIN pg_am m ON m.oid = k.relam),
policies AS (
  SELECT p.*, t.shown || ' policy ' || p.polname AS shown,
         replace(regexp_replace(pg_get_expr(p.polqual, p.polrelid), '[\s()]', '', 'g'),
                 'AS"nullif"', '') AS reads,
         replace(regexp_replace(pg_get_expr(p.polwithcheck, p.polrelid), '[\s()]', '', 'g'),
                 'AS"nullif"', '') AS writes,
         'tenant_id=SELECTNULLIFcurrent_setting''mnemic.tenant_id''::text,true,''''::text::uuid'
           AS wall
    FROM pg_policy p JOIN tables t ON t.oid = p.polrelid),
functions AS (
  SELECT f.*, format('mnemic.%s(%s)', f.proname, pg_get_function_identity_arguments(f.oid)) AS shown
    FROM pg_proc f, space
   WHERE f.pronamespace = space.oid),
rights AS (
  SELECT r.shown, r.relkind, r.relispartition, r.relname, a.* FROM relations r,
         aclexplode(coalesce(r.relacl, acldefault(CASE r.relkind WHEN 'S' THEN 's' ELSE 'r' END
                                                  ::"char", r.relowner))) a
   WHERE r.relkind IN ('r', 'p', 'v', 'm', 'f', 'S'))

-- Keys

--! has no tenant_id and is not listed as a table without a tenant (rule 10)
SELECT shown FROM tables, given WHERE NOT has_tenant AND relname <> ALL (tenantless)

--! is listed as a table without a tenant, but has a tenant_id (rule 10)
SELECT shown FROM tables, given WHERE has_tenant AND relname = ANY (tenantless)

--! must be a uuid that is never null and has no default (rule 2)
SELECT shown FROM columns
 WHERE name = 'tenant_id' AND (type <> 'uuid' OR NOT attnotnull OR atthasdef)

--! has no primary key that starts with tenant_id (rule 1)
SELECT shown FROM tables t WHERE has_tenant AND NOT EXISTS (
  SELECT FROM indexes i WHERE i.indrelid = t.oid AND i.indisprimary AND i.starts_with_tenant)

--! is unique over all tenants: it must start with tenant_id (rule 1)
SELECT shown FROM indexes
 WHERE has_tenant AND (indisunique OR indisexclusion) AND NOT starts_with_tenant

--! is a foreign key that does not start with tenant_id on both sides (rule 1)
SELECT t.shown || ' ' || f.conname FROM pg_constraint f
  JOIN tables t ON t.oid = f.conrelid
 WHERE f.contype = 'f'
   AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = f.confrelid
                  AND a.attname = 'tenant_id' AND NOT a.attisdropped)
   AND NOT (t.has_tenant
     AND EXISTS (SELECT FROM columns c WHERE c.oid = f.conrelid
                    AND c.name = 'tenant_id' AND c.attnum = f.conkey[1])
     AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = f.confrelid
                    AND a.attname = 'tenant_id' AND a.attnum = f.confkey[1]))

--! refers to a table outside of the schema (rule 1)
SELECT t.shown || ' ' || f.conname FROM pg_constraint f JOIN tables t ON t.oid = f.conrelid
 WHERE f.contype = 'f' AND f.confrelid NOT IN (SELECT oid FROM tables)

--! is not partitioned by tenant_id alone, or has no DEFAULT partition
SELECT t.shown FROM pg_partitioned_table p JOIN tables t ON t.oid = p.partrelid
 WHERE t.has_tenant AND (p.partdefid = 0 OR p.partnatts <> 1 OR NOT EXISTS (
   SELECT FROM columns c WHERE c.oid = t.oid AND c.name = 'tenant_id'
      AND c.attnum = p.partattrs[0]))

-- Walls

--! has row-level security disabled (rule 3)
SELECT shown FROM tables WHERE has_tenant AND NOT relrowsecurity

--! does not force row-level security on its owner (rule 3)
SELECT shown FROM tables WHERE has_tenant AND NOT relforcerowsecurity

--! has no policy that keeps reading and writing to the tenant of the setting (rule 3)
SELECT shown FROM tables t WHERE has_tenant AND NOT EXISTS (
  SELECT FROM policies p WHERE p.polrelid = t.oid AND p.polcmd = '*' AND p.polpermissive
     AND p.polroles = '{0}' AND p.reads = p.wall AND p.writes = p.wall)

--! lets through more than the tenant's own rows (rule 3)
SELECT shown FROM policies
 WHERE polpermissive
   AND NOT (reads IS NOT DISTINCT FROM wall AND coalesce(writes, wall) = wall)
   AND NOT (polcmd = 'r' AND reads = 'true'
            AND polroles = ARRAY[coalesce(to_regrole('mnemic_lookup')::oid, 0)])

--! is a view without security_invoker
SELECT shown FROM relations
 WHERE relkind = 'v' AND NOT coalesce(reloptions @> '{security_invoker=true}', false)

--! is neither a table, an index, a sequence nor a view: policies do not hold for it
SELECT shown FROM relations WHERE relkind IN ('m', 'f')

--! is not logged: a crash of the server would empty it
SELECT shown FROM tables WHERE relpersistence <> 'p'

-- Rights

--! does not belong to mnemic_owner
SELECT shown FROM relations
 WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
   AND relowner IS DISTINCT FROM to_regrole('mnemic_owner')::oid
UNION ALL SELECT 'schema mnemic' FROM space
 WHERE nspowner IS DISTINCT FROM to_regrole('mnemic_owner')::oid

--! gives rights to PUBLIC
SELECT shown FROM rights WHERE grantee = 0
UNION SELECT shown FROM columns, aclexplode(attacl) a WHERE a.grantee = 0
UNION SELECT shown FROM functions, aclexplode(coalesce(proacl, acldefault('f', proowner))) a
       WHERE a.grantee = 0
UNION SELECT 'mnemic.' || y.typname FROM pg_type y JOIN space ON space.oid = y.typnamespace,
             aclexplode(coalesce(typacl, acldefault('T', typowner))) a
       WHERE y.typtype IN ('e', 'd', 'r') AND a.grantee = 0
UNION SELECT 'schema mnemic' FROM space, aclexplode(nspacl) a WHERE a.grantee = 0

--! gives mnemic_app more than to read and write rows
SELECT shown || ' (' || privilege_type || ')' FROM rights
 WHERE grantee = to_regrole('mnemic_app')::oid
   AND (is_grantable OR privilege_type NOT IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE'))

--! does not let mnemic_app do what it serves by
SELECT t.shown || ' (' || w.needed || ')'
  FROM tables t, (VALUES ('SELECT', '{}'::text[]),
                         ('INSERT', '{alembic_version,predicates,promoted_indexes}')) AS w (needed, but)
 WHERE NOT t.relispartition AND NOT t.is_moving AND t.relname <> ALL (w.but)
   AND NOT has_table_privilege(to_regrole('mnemic_app'), t.oid, w.needed)
UNION
SELECT t.shown || ' (UPDATE or DELETE)' FROM tables t
 WHERE NOT t.relispartition AND NOT t.is_moving AND t.has_tenant
   AND t.relname NOT IN ('audit_log', 'audit_seals', 'promoted_indexes')
   AND NOT has_table_privilege(to_regrole('mnemic_app'), t.oid, 'UPDATE, DELETE')
UNION
SELECT f.shown || ' (EXECUTE)' FROM functions f
 WHERE f.prosecdef AND NOT has_function_privilege(to_regrole('mnemic_app'), f.oid, 'EXECUTE')

--! is a partition on which mnemic_app has rights of its own (rule 3)
SELECT shown FROM rights WHERE relispartition AND grantee = to_regrole('mnemic_app')::oid
UNION SELECT c.shown FROM columns c JOIN tables t USING (oid), aclexplode(c.attacl) a
       WHERE t.relispartition AND a.grantee = to_regrole('mnemic_app')::oid

--! is of the audit, and mnemic_app may change or delete its rows
SELECT DISTINCT shown FROM rights
 WHERE relname LIKE 'audit\_%' AND grantee = to_regrole('mnemic_app')::oid
   AND privilege_type NOT IN ('SELECT', 'INSERT')

--! gives mnemic_lookup more than to read single columns
SELECT shown FROM rights WHERE grantee = to_regrole('mnemic_lookup')::oid
UNION SELECT shown FROM columns, aclexplode(attacl) a
       WHERE a.grantee = to_regrole('mnemic_lookup')::oid AND a.privilege_type <> 'SELECT'

--! may create objects in the schema
SELECT rolname FROM pg_roles, space WHERE rolname IN ('mnemic_app', 'mnemic_lookup')
   AND has_schema_privilege(pg_roles.oid, space.oid, 'CREATE')

--! is missing, or is or may become a role that sees through policies
SELECT name FROM unnest(ARRAY['mnemic_owner', 'mnemic_app', 'mnemic_lookup']) AS name
 WHERE to_regrole(name) IS NULL
UNION SELECT m.rolname FROM pg_roles m, pg_roles g
 WHERE m.rolname IN ('mnemic_owner', 'mnemic_app', 'mnemic_lookup')
   AND pg_has_role(m.oid, g.oid, 'MEMBER')
   AND (g.rolsuper OR g.rolbypassrls OR (m.rolname <> 'mnemic_owner' AND m.oid <> g.oid
        AND g.rolname IN ('mnemic_owner', 'mnemic_lookup')))
UNION SELECT rolname FROM pg_roles WHERE rolname = 'mnemic_lookup' AND rolcanlogin

-- Columns

--! keeps a time without its zone (rule 5)
SELECT shown FROM columns WHERE ltrim(type, '_') IN ('timestamp', 'time', 'timetz', 'date')

--! must be part of every table of memories (one with `trust`) and of its type
SELECT t.shown || '.' || w.name
  FROM tables t, (VALUES ('scope_id', 'uuid', true), ('metadata', 'jsonb', true),
                         ('tags', '_text', true), ('person_id', 'text', false),
                         ('trust', 'int2', true), ('source', 'text', true),
                         ('recorded_at', 'timestamptz', true)) AS w (name, type, needed)
 WHERE EXISTS (SELECT FROM columns c WHERE c.oid = t.oid AND c.name = 'trust')
   AND NOT EXISTS (SELECT FROM columns c WHERE c.oid = t.oid AND c.name = w.name
                      AND c.type = w.type AND c.attnotnull = w.needed)

--! has one axis of time without the other (rule 5)
SELECT shown FROM tables t
 WHERE EXISTS (SELECT FROM columns c WHERE c.oid = t.oid
                  AND c.name IN ('valid_from', 'valid_to'))
   AND 4 > (SELECT count(*) FROM columns c WHERE c.oid = t.oid AND c.name IN
              ('valid_from', 'valid_to', 'recorded_at', 'retired_at'))

--! indexes text of any length: index its digest, or bound it by a check (rule 6)
SELECT DISTINCT i.shown || ' (' || coalesce(c.name, 'an expression') || ')' FROM indexes i
  JOIN pg_attribute k ON k.attrelid = i.indexrelid AND k.attnum <= i.indnkeyatts
  JOIN pg_type y ON y.oid = k.atttypid
  LEFT JOIN columns c ON c.oid = i.indrelid AND c.attnum = i.indkey[k.attnum - 1]
 WHERE i.method = 'btree' AND y.typname IN ('text', 'varchar', 'bytea', 'jsonb', '_text')
   AND coalesce(c.atttypmod, -1) = -1
   AND NOT EXISTS (
     SELECT FROM pg_constraint k WHERE k.conrelid = i.indrelid AND k.contype = 'c'
        AND k.conkey = ARRAY[c.attnum]
        AND regexp_replace(pg_get_constraintdef(k.oid), '[()\s]', '', 'g')
            ~ ('octet_length' || c.name || '(<=|=)[0-9]|' || c.name || '=ANY'))

--! stands beside a vector: counters, times and confidence live elsewhere (rule 7)
SELECT shown FROM columns WHERE type NOT IN ('uuid', 'int2', 'vector', 'halfvec')
   AND oid IN (SELECT oid FROM columns WHERE type IN ('vector', 'halfvec', 'sparsevec'))

--! is a list that grows with each change: history is rows (rule 8)
SELECT shown FROM columns WHERE type IN ('json', '_json', '_jsonb')
    OR (type LIKE '\_%' OR type = 'jsonb') AND name ~ '(history|versions|log|events|changes)$'

--! is made by the server: ids come from the client, and sequences tell counts (rule 9)
SELECT shown FROM columns WHERE has_tenant
   AND (attidentity <> '' OR standard ~ 'nextval|random|uuid' OR type = 'uuid' AND atthasdef)

-- Names and validity

--! has a name that the server made up: write it out (rule 11)
SELECT shown FROM indexes
 WHERE table_name <> 'alembic_version'
   AND (NOT starts_with(name, table_name || '_') OR name !~ '_(pkey|key|idx)$'
        OR name ~ '_tenant_id_.+_(key|idx)$')
UNION SELECT t.shown || ' ' || k.conname FROM pg_constraint k
  JOIN tables t ON t.oid = k.conrelid
 WHERE k.contype IN ('c', 'f', 'x') AND k.conparentid = 0 AND k.conislocal
   AND t.relname <> 'alembic_version'
   AND (NOT starts_with(k.conname, t.relname || '_') OR k.conname !~ '_(check|fkey|excl)$'
        OR k.conname ~ '_tenant_id_.+_fkey$')

--! is not valid: it was not finished, or not checked
SELECT shown FROM indexes WHERE NOT (indisvalid AND indisready)
   AND method <> 'hnsw' /* a tenant's own is built beside those who serve: the doctor tells */
UNION SELECT t.shown || ' ' || k.conname FROM pg_constraint k
  JOIN tables t ON t.oid = k.conrelid
 WHERE NOT k.convalidated OR to_jsonb(k) ->> 'conenforced' = 'false'

-- Functions

--! runs with its owner's rights and is not listed (rule 10)
SELECT shown FROM functions, given WHERE prosecdef AND proname <> ALL (definers)

--! is listed as a definer function, but there is none (rule 10)
SELECT name FROM given, unnest(definers) AS name
 WHERE NOT EXISTS (SELECT FROM functions WHERE proname = name AND prosecdef)

--! looks past the policies and does not belong to mnemic_lookup (rule 10)
SELECT shown FROM functions
 WHERE prosecdef AND proowner IS DISTINCT FROM to_regrole('mnemic_lookup')::oid

--! does not pin its search path to pg_catalog, mnemic, pg_temp (rule 10)
SELECT shown FROM functions WHERE NOT coalesce(proconfig @>
  ARRAY['search_path=pg_catalog, mnemic, pg_temp'], false)

--! looks past the policies and may write: it must be SQL, parsed and stable (rule 10)
SELECT shown FROM functions f JOIN pg_language l ON l.oid = f.prolang
 WHERE prosecdef AND (lanname <> 'sql' OR prosqlbody IS NULL OR provolatile = 'v')
