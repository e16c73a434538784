"""The demo: orders are fulfilled while the processes that work on them are killed, again and again.

``python -m testproject.demo`` needs nothing but this checkout; ``DATABASE_URL`` names a PostgreSQL server to use
instead of an SQLite file, ``--celery`` runs it on Celery with the broker of ``BROKER_URL``, and ``--planes`` gives it
tenants on data planes, one of which goes away for a while.
"""
