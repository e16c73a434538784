"""Celery carries the work: a real broker, real workers, a real beat."""
