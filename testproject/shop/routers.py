"""Where the shop's tables are: beside the executions that fulfil its orders."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import django
from django.db.models import Model

import django_durable
from django_durable.routers import PlaneRouter

__all__ = ["ShopRouter", "SpineRouter"]


class ShopRouter(PlaneRouter):
    """A tenant's orders are on its plane."""

    plane_apps: ClassVar[frozenset[str]] = frozenset({"shop"})


class SpineRouter:
    """No planes, and a spine apart from ``default``: every table is on it, and ``default`` is empty.

    The package has to name the database of each of its queries. One that leaves it to a router would be asked of
    ``default`` in a project without one, so it is an error here.
    """

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        """The spine, unless it is the package that asks."""
        if hints.get("instance") is None and model._meta.app_label == "django_durable" and _asks_the_package():
            raise AssertionError(f"a query of the package on {model.__name__} names no database; add using()")
        return "spine"

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """Everything on the spine."""
        return db == "spine"


_DJANGO, _PACKAGE = (str(Path(module.__file__ or "").parent) for module in (django, django_durable))


def _asks_the_package() -> bool:
    """Whether the nearest frame that is not Django's nor this module's is one of the package's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_DJANGO, __file__)):
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(_PACKAGE)
