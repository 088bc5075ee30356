"""The only place with SQL or Valkey commands."""
