-- Purpose: the three roles, the extensions and the schema, run inside the database as an
-- administrator. Safe to repeat: what is there stays, and what is unfit is refused.
-- Parameters: none. Index: none.

DO $encoding$
BEGIN
  IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION USING ERRCODE = 'MN001',
      MESSAGE = format('the database is encoded as %s', current_setting('server_encoding')),
      HINT = 'use a database with the encoding UTF8';
  END IF;
END $encoding$;

-- Roles are one set for the whole server, so another initialiser may be a moment ahead.
DO $roles$
DECLARE
  wanted record;
BEGIN
  FOR wanted IN
    SELECT * FROM (VALUES ('mnemic_owner', 'LOGIN'), ('mnemic_app', 'LOGIN'),
                          ('mnemic_lookup', 'NOLOGIN')) AS role (name, login)
     WHERE name NOT IN (SELECT rolname FROM pg_roles)
  LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I %s NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION '
                     'NOBYPASSRLS', wanted.name, wanted.login);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
  END LOOP;
END $roles$;

-- A role with one of these attributes, or a member of such a role, sees through every policy.
DO $fit$
DECLARE
  unfit record;
BEGIN
  SELECT rolname, CASE
      WHEN rolsuper THEN 'SUPERUSER'
      WHEN rolbypassrls THEN 'BYPASSRLS'
      WHEN rolcreaterole THEN 'CREATEROLE'
      WHEN rolcreatedb THEN 'CREATEDB'
      WHEN rolreplication THEN 'REPLICATION'
      ELSE 'LOGIN' END AS attribute
    INTO unfit FROM pg_roles
   WHERE rolname IN ('mnemic_owner', 'mnemic_app', 'mnemic_lookup')
     AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication
          OR (rolname = 'mnemic_lookup' AND rolcanlogin))
   ORDER BY rolname LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'MN001',
      MESSAGE = format('the role %s exists with %s', unfit.rolname, unfit.attribute),
      HINT = format('run ALTER ROLE %s NO%s, or drop the role', unfit.rolname, unfit.attribute);
  END IF;
  SELECT member.rolname AS member, granted.rolname AS granted
    INTO unfit FROM pg_auth_members m
    JOIN pg_roles member ON member.oid = m.member
    JOIN pg_roles granted ON granted.oid = m.roleid
   WHERE member.rolname IN ('mnemic_owner', 'mnemic_app', 'mnemic_lookup')
     AND (member.rolname, granted.rolname) <> ('mnemic_owner', 'mnemic_lookup')
     AND EXISTS (
       SELECT FROM pg_roles mighty WHERE pg_has_role(granted.oid, mighty.oid, 'MEMBER')
          AND (mighty.rolsuper OR mighty.rolbypassrls OR mighty.rolname IN (
                 'mnemic_owner', 'mnemic_app', 'mnemic_lookup', 'pg_read_all_data',
                 'pg_write_all_data', 'pg_maintain', 'pg_execute_server_program',
                 'pg_read_server_files', 'pg_write_server_files')))
   ORDER BY 1, 2 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'MN001',
      MESSAGE = format('the role %s is a member of %s', unfit.member, unfit.granted),
      HINT = format('run REVOKE %s FROM %s', unfit.granted, unfit.member);
  END IF;
END $fit$;

-- The owner may make functions that belong to the look-up role, without holding its rights.
GRANT mnemic_lookup TO mnemic_owner WITH INHERIT FALSE, SET TRUE;

DO $entrance$
BEGIN
  EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO mnemic_owner, mnemic_app',
                 current_database());
END $entrance$;

CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- An administrator who is no superuser must become the owner for a moment to make its schema.
DO $schema$
DECLARE
  admin name := current_user;
  holder name := (
    SELECT rolname FROM pg_namespace JOIN pg_roles ON pg_roles.oid = nspowner
     WHERE nspname = 'mnemic');
  may_become boolean := pg_has_role('mnemic_owner', 'SET');
BEGIN
  IF holder <> 'mnemic_owner' THEN
    RAISE EXCEPTION USING ERRCODE = 'MN001',
      MESSAGE = format('the schema mnemic belongs to %s', holder),
      HINT = 'choose another database, or run ALTER SCHEMA mnemic OWNER TO mnemic_owner';
  END IF;
  IF holder IS NULL OR NOT has_schema_privilege('mnemic_app', 'mnemic', 'USAGE')
     OR NOT has_schema_privilege('mnemic_lookup', 'mnemic', 'USAGE') THEN
    IF NOT may_become THEN
      EXECUTE format('GRANT mnemic_owner TO %I WITH INHERIT FALSE, SET TRUE', admin);
    END IF;
    IF holder IS NULL THEN
      CREATE SCHEMA mnemic AUTHORIZATION mnemic_owner;
    END IF;
    SET LOCAL ROLE mnemic_owner;
    GRANT USAGE ON SCHEMA mnemic TO mnemic_app, mnemic_lookup;
    EXECUTE format('SET LOCAL ROLE %I', admin);
    IF NOT may_become THEN
      EXECUTE format('REVOKE SET OPTION FOR mnemic_owner FROM %I', admin);
    END IF;
  END IF;
END $schema$;

-- The extensions may live in a schema of their own; their types must be found without a prefix.
-- Custom plans see a tenant's size; a prepared statement's generic plan would forget it.
DO $settings$
DECLARE
  path text := (
    SELECT string_agg(DISTINCT format(', %I', nspname), '')
      FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
     WHERE extname IN ('vector', 'pg_trgm', 'btree_gin'));
  place text := current_database();
BEGIN
  EXECUTE format('ALTER ROLE mnemic_owner IN DATABASE %I SET search_path = mnemic%s', place, path);
  EXECUTE format('ALTER ROLE mnemic_app IN DATABASE %I SET search_path = mnemic%s', place, path);
  EXECUTE format('ALTER ROLE mnemic_app IN DATABASE %I SET plan_cache_mode = force_custom_plan',
                 place);
  EXECUTE format('ALTER ROLE mnemic_app IN DATABASE %I SET jit = off', place);
END $settings$;
