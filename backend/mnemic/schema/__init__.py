"""Tables, one file each; read by the store and by Alembic only."""
