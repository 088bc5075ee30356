-- Purpose: a database that was made for this alone is nobody else's to enter or to write in.
-- Parameters: none. Index: none.
DO $close$
BEGIN
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  REVOKE CREATE ON SCHEMA public FROM PUBLIC;
END $close$;
