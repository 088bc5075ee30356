"""The clock: Celery worker and beat."""
