"""find_schedule: a tenant's schedule by its name, on its plane."""

from __future__ import annotations

from django_durable.engine.reach import reaching
from django_durable.errors import ScheduleNotFound
from django_durable.models import Schedule
from django_durable.models.columns import check_name
from django_durable.models.schedule import SCHEDULE_NAME_LENGTH
from django_durable.planes.selection import plane_alias

__all__ = ["find_schedule"]


def find_schedule(name: str, *, tenant: str | None = None) -> Schedule:
    """Raises ``ScheduleNotFound``, ``UnknownTenant``, ``PlaneUnavailable``."""
    check_name(name, "schedule name", maximum=SCHEDULE_NAME_LENGTH)
    alias = plane_alias(tenant or "")
    with reaching(alias):
        found = Schedule.objects.using(alias).filter(tenant=tenant or "", name=name).first()
    if found is None:
        of = f" of tenant {tenant!r}" if tenant else ""
        raise ScheduleNotFound(f"there is no schedule {name!r}{of}; one of the code appears with the first tick")
    return found
