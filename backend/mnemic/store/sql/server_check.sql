-- Purpose: refuse a server or an extension that is too old. Parameters: none. Index: none.
-- MN001 marks a refusal whose message and hint are meant for the operator.
DO $check$
DECLARE
  vector_version text := (
    SELECT coalesce(installed_version, default_version)
      FROM pg_available_extensions WHERE name = 'vector');
BEGIN
  IF current_setting('server_version_num')::int < 160000 THEN
    RAISE EXCEPTION USING ERRCODE = 'MN001',
      MESSAGE = format('PostgreSQL %s is too old', current_setting('server_version')),
      HINT = 'use PostgreSQL 16 or later';
  END IF;
  IF vector_version IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'MN001',
      MESSAGE = 'the server has no pgvector',
      HINT = 'install pgvector 0.8 or later on the server';
  END IF;
  IF string_to_array(substring(vector_version from '^[0-9.]+'), '.')::int[] < ARRAY[0, 8] THEN
    RAISE EXCEPTION USING ERRCODE = 'MN001',
      MESSAGE = format('pgvector %s is too old', vector_version),
      HINT = 'install pgvector 0.8 or later, then run ALTER EXTENSION vector UPDATE';
  END IF;
END $check$;
