"""The planes that exist: those of ``PLANES``, and those of ``DataPlane`` rows, refreshed while workers run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass

from django.conf import settings
from django.core.signals import setting_changed
from django.db import IntegrityError, InterfaceError, OperationalError, connections, transaction
from django.db.models import F

from django_durable.conf import config
from django_durable.database_errors import is_disconnect
from django_durable.errors import PlaneUnavailable
from django_durable.models import DataPlane
from django_durable.models.columns import check_name

REFRESH_SECONDS = 10.0
"""A plane that was added or retired elsewhere is known here after so long; an unknown name is looked up at once."""

ROUTER = "PlaneRouter"
LENT, FIRST = 0, 1
"""Generations: of a plane without a row of its own, and of one that has just got it."""


@dataclass(frozen=True, slots=True)
class Plane:
    """One plane as this process knows it."""

    name: str
    database: str
    state: str = DataPlane.State.ACTIVE
    generation: int = 0

    @property
    def claimable(self) -> bool:
        """Whether work on it is run: a draining plane goes on with its tenants, a closed one is left alone."""
        return self.state != DataPlane.State.CLOSED

    @property
    def accepts_tenants(self) -> bool:
        """Whether a tenant may be placed on it, or moved to it."""
        return self.state == DataPlane.State.ACTIVE


_known: dict[str, Plane] | None = None
_read_at = float("-inf")
_lock = threading.Lock()


def planes_in_use() -> bool:
    """Whether this project has data planes at all: then, and only then, the spine is asked about them."""
    return bool(config().planes) or any(ROUTER in str(router) for router in settings.DATABASE_ROUTERS)


def all_planes(*, fresh: bool = False) -> dict[str, Plane]:
    """Every plane by name; read from the spine at most every REFRESH_SECONDS unless ``fresh``.

    While the spine is away what was known last is used: turns and signals on planes need it no more than that.
    """
    global _known, _read_at
    if not planes_in_use():
        return {}
    known = _known
    current = known is not None and not fresh
    if current and time.monotonic() - _read_at <= REFRESH_SECONDS:
        return known or {}
    # Who knows something goes on with it while another thread asks: a slow spine holds up nobody else.
    if not _lock.acquire(blocking=not current):
        return known or {}
    try:
        if _known is None or fresh or time.monotonic() - _read_at > REFRESH_SECONDS:
            try:
                _known = _read()
            except (OperationalError, InterfaceError) as error:
                if _known is None or fresh or not is_disconnect(error):
                    raise
            _read_at = time.monotonic()
        return _known
    finally:
        _lock.release()


def _read() -> dict[str, Plane]:
    found = {name: Plane(name, alias) for name, alias in config().planes.items()}
    spine = config().spine
    # A savepoint in a transaction: where the table is still to be migrated, the failed read must not end it.
    inside = transaction.atomic(using=spine) if connections[spine].in_atomic_block else nullcontext()
    with inside:
        rows = list(DataPlane.objects.using(spine).all())
    for row in rows:
        found[row.name] = Plane(row.name, row.database, row.state, row.generation)
    return found


def find_plane(name: str, *, fresh: bool = False) -> Plane:
    """The plane of this name. Raises ``PlaneUnavailable`` for one that nobody registered."""
    plane = all_planes(fresh=fresh).get(name) or all_planes(fresh=True).get(name)
    if plane is None:
        raise PlaneUnavailable(f"no data plane {name!r} is registered; add it to PLANES or with register_plane()")
    return plane


def alias_of(name: str) -> str:
    """The database alias of a plane; ``''`` is the spine's own database. Raises ``PlaneUnavailable``."""
    if not name:
        return config().spine
    alias = find_plane(name).database
    if alias not in connections.settings:
        raise PlaneUnavailable(f"data plane {name!r} is on database {alias!r}, which is not in DATABASES here")
    return alias


def name_of(alias: str) -> str:
    """The plane on this database alias; ``''`` for the spine's own database."""
    if alias == config().spine:
        return ""
    for plane in all_planes().values():
        if plane.database == alias:
            return plane.name
    raise PlaneUnavailable(f"database {alias!r} is no data plane")


def register_plane(name: str, database: str) -> None:
    """Add a plane, or point one to another database alias; processes that run know it within REFRESH_SECONDS.

    Raises ``ValueError`` for an alias that is not in ``DATABASES`` or that another plane has.
    """
    check_name(name, "plane name")
    if database not in connections.settings:
        raise ValueError(f"database {database!r} is not in DATABASES; add it before it becomes a plane")
    spine = config().spine
    with transaction.atomic(using=spine):
        rows = DataPlane.objects.using(spine).select_for_update()
        taken = [plane.name for plane in _read().values() if plane.database == database and plane.name != name]
        if taken:
            raise ValueError(f"database {database!r} is plane {taken[0]!r} already")
        row = rows.filter(pk=name).first()
        if row is None:
            DataPlane.objects.using(spine).create(name=name, database=database)
        elif row.database != database:
            rows.filter(pk=name).update(database=database, generation=row.generation + 1)
    forget_planes()


@contextmanager
def held(plane: Plane) -> Iterator[Plane]:
    """The plane as it is now, and as it stays until the end of the spine's transaction, which this opens.

    Who places a tenant on a plane and who closes it decide one after the other. A plane of ``PLANES`` alone gets a
    row for that long, unless the block gives it one.
    """
    spine = config().spine
    with transaction.atomic(using=spine):
        rows = DataPlane.objects.using(spine).filter(pk=plane.name)
        lent = False
        while not rows.update(generation=F("generation")):  # a write first: on SQLite it is the lock
            with suppress(IntegrityError), transaction.atomic(using=spine):
                DataPlane.objects.using(spine).create(name=plane.name, database=plane.database, generation=LENT)
                lent = True
        row = rows.get()
        yield Plane(row.name, row.database, row.state, row.generation)
        if lent:
            rows.filter(generation=LENT).delete()


def set_state(name: str, state: str) -> None:
    """Make a plane active, draining or closed. Raises ``PlaneUnavailable`` for one that nobody registered."""
    spine = config().spine
    plane = find_plane(name, fresh=True)
    values = {"database": plane.database, "state": state, "generation": max(plane.generation, FIRST)}
    DataPlane.objects.using(spine).update_or_create(name=name, defaults=values)
    forget_planes()


def forget_planes(**kwargs: object) -> None:
    """Read again at the next look."""
    global _known
    if kwargs.get("setting") in (None, "DURABLE", "DATABASE_ROUTERS", "DATABASES"):
        _known = None


setting_changed.connect(forget_planes)
