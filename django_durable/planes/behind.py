"""Migrations that a plane still lacks: it is not claimed from, so that no step meets a table of yesterday."""

from __future__ import annotations

import logging
import threading
import time
from functools import cache

from django.apps import apps
from django.core.signals import setting_changed
from django.db import connections, router
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from django_durable.planes.registry import REFRESH_SECONDS, Plane

logger = logging.getLogger("django_durable")

_looked: dict[str, tuple[int, float, bool]] = {}
"""By alias: the plane's generation, when it was looked at, and whether it lagged."""
_lock = threading.Lock()


def behind(alias: str) -> list[str]:
    """The migrations of this code that the database lacks, of apps that have tables there; in the order of names.

    Raises ``OperationalError`` where it cannot be reached.
    """
    applied = set(MigrationRecorder(connections[alias]).applied_migrations())
    wanted = {label for label, _name in _on_disk() if _has_tables(alias, label)}
    return sorted(
        f"{label}.{name}"
        for (label, name), replaced in _on_disk().items()
        if label in wanted
        and (label, name) not in applied
        and not (replaced and all(one in applied for one in replaced))
    )


def lags(plane: Plane) -> bool:
    """Whether the plane lacks migrations: asked at most every REFRESH_SECONDS, and at once for a new generation.

    Told in the log once a change. Raises ``OperationalError`` where it cannot be reached.
    """
    known = _fresh(plane)
    if known is not None:
        return known
    missing = behind(plane.database)
    with _lock:
        before = _looked.get(plane.database)
        _looked[plane.database] = (plane.generation, time.monotonic(), bool(missing))
    if missing and not (before and before[2]):
        logger.warning(
            "data plane %r lacks %d migration(s); its work waits: manage.py durable planes migrate",
            plane.name,
            len(missing),
        )
    elif before and before[2] and not missing:
        logger.warning("data plane %r has its migrations; its work goes on", plane.name)
    return bool(missing)


def known_to_lag(plane: Plane) -> bool:
    """The same without a query: whether it lagged at a look that is recent enough to go by."""
    return _fresh(plane) is True


def _fresh(plane: Plane) -> bool | None:
    looked = _looked.get(plane.database)
    if looked is None or looked[0] != plane.generation or time.monotonic() - looked[1] > REFRESH_SECONDS:
        return None
    return looked[2]


@cache
def _on_disk() -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Every migration of this code, with those that it replaces."""
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    return {key: list(migration.replaces) for key, migration in loader.disk_migrations.items()}


def _has_tables(alias: str, label: str) -> bool:
    return any(router.allow_migrate_model(alias, model) for model in apps.get_app_config(label).get_models())


def forget_looks(**kwargs: object) -> None:
    """Look again at the next question."""
    if kwargs.get("setting") in (None, "DURABLE", "DATABASE_ROUTERS", "DATABASES", "MIGRATION_MODULES"):
        _looked.clear()
        _on_disk.cache_clear()


setting_changed.connect(forget_looks)
