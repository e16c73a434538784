"""The project around the engine: time zones, routers and transactions per request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connections, router
from django.utils.translation import gettext as _

from django_durable.conf import Config, read_settings

ROUTER = "django_durable.routers.PlaneRouter"


def check_project(app_configs: object, **kwargs: Any) -> list[CheckMessage]:
    """Django's own settings, as far as durable executions depend on them."""
    config, _problems = read_settings()
    return [
        *_naive_times(),
        *_missing_router(config),
        *_foreign_transactions(config),
        *(message for alias in plane_aliases(config) for message in requests_on_plane(alias)),
    ]


def engine_aliases(config: Config) -> list[str]:
    """The aliases in ``DATABASES`` that hold the engine's tables, as the settings tell, the spine first."""
    named = dict.fromkeys([config.spine, *config.planes.values()])
    return [alias for alias in named if alias in connections]


def plane_aliases(config: Config) -> list[str]:
    """The same without the spine's: the databases of planes of their own."""
    return [alias for alias in engine_aliases(config) if alias != config.spine]


def _naive_times() -> Iterator[CheckMessage]:
    if not settings.USE_TZ:
        yield Error(
            _("USE_TZ is False: durable timers and deadlines are aware datetimes."),
            hint=_("Set USE_TZ = True."),
            id="durable.E010",
        )


def _missing_router(config: Config) -> Iterator[CheckMessage]:
    if len({config.spine, *config.planes.values()}) > 1 and not any(map(_is_plane_router, router.routers)):
        yield Error(
            _("DURABLE['PLANES'] names more than one database, but %(router)s is not in DATABASE_ROUTERS.")
            % {"router": ROUTER},
            hint=_("Add %(router)r to DATABASE_ROUTERS, before routers that answer for every app.")
            % {"router": ROUTER},
            id="durable.E011",
        )


def _is_plane_router(candidate: object) -> bool:
    """Whether this is our router or a subclass, told by name: routers live on a higher floor."""
    return any(f"{each.__module__}.{each.__qualname__}" == ROUTER for each in type(candidate).__mro__)


def _foreign_transactions(config: Config) -> Iterator[CheckMessage]:
    """A request's transaction on another database is exactly what a start refuses with ``WrongDatabase``."""
    if config.cross_database_start != "refuse":
        return
    planes = plane_aliases(config)
    wrapped = [alias for alias in connections if _wraps_requests(alias) and alias not in planes]
    refusing = [alias for alias in engine_aliases(config) if not _wraps_requests(alias)]
    if wrapped and refusing:
        yield Warning(
            _(
                "ATOMIC_REQUESTS of %(wrapped)s opens a transaction around every view, and a start on "
                "%(others)s is refused there."
            )
            % {"wrapped": ", ".join(map(repr, wrapped)), "others": ", ".join(map(repr, refusing))},
            hint=_(
                "Mark views that start executions with transaction.non_atomic_requests, or choose what "
                "happens with DURABLE['CROSS_DATABASE_START']."
            ),
            id="durable.W010",
        )


def requests_on_plane(alias: str) -> Iterator[CheckMessage]:
    """Django opens the transaction of every database that has the option, whatever the view is about."""
    if _wraps_requests(alias):
        yield Warning(
            _("ATOMIC_REQUESTS of %(alias)r, a data plane, connects every request of every tenant to it.")
            % {"alias": alias},
            hint=_(
                "While that plane is down all views fail, and a start for a tenant of another plane is refused in "
                "each of them; remove it, and use transaction.atomic(using=…) in the views that need it."
            ),
            id="durable.W011",
        )


def _wraps_requests(alias: str) -> bool:
    return bool(connections[alias].settings_dict["ATOMIC_REQUESTS"])
