"""The project that the tests, the documentation and the demo run in: a small shop.

Celery is loaded only where a broker is named: everything else shows what works with the database alone.
"""

import os

if os.environ.get("BROKER_URL"):
    from testproject.celery import app as celery_app

    __all__ = ["celery_app"]
