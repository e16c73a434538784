"""PlaneRouter: spine tables on the spine, plane tables on the selected plane, nothing else on a plane by itself."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import OperationalError, ProgrammingError
from django.db.models import Model

from django_durable.conf import config
from django_durable.database_errors import is_disconnect
from django_durable.models import PLANE_MODELS, SPINE_MODELS
from django_durable.planes.registry import all_planes
from django_durable.planes.selection import selected_alias

APP = "django_durable"
_ON_SPINE = frozenset(model._meta.model_name for model in SPINE_MODELS)
_ON_PLANES = frozenset(model._meta.model_name for model in PLANE_MODELS)


class PlaneRouter:
    """``DATABASE_ROUTERS = ["django_durable.routers.PlaneRouter"]``, only with more than one data plane.

    A project whose own tables live on its tenants' planes subclasses it and names those apps in ``plane_apps``.
    Models are told apart by name, so historical models in migrations get the same answers.
    """

    plane_apps: ClassVar[frozenset[str]] = frozenset()

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        """The spine, the instance's own plane, or the selected one. Raises ``PlaneNotSelected``."""
        label, name = model._meta.app_label, model._meta.model_name
        if label == APP and name in _ON_SPINE:
            return config().spine
        if (label == APP and name in _ON_PLANES) or label in self.plane_apps:
            return self._plane(hints.get("instance"))
        return None

    db_for_write = db_for_read

    @staticmethod
    def _plane(instance: Model | None) -> str:
        if instance is not None and instance._state.db in _aliases():
            return str(instance._state.db)
        return selected_alias()

    def allow_relation(self, one: Model, other: Model, **hints: Any) -> bool | None:
        """Rows on a plane relate to rows of the same database only."""
        if not {self._routed(one), self._routed(other)} & {True}:
            return None
        return one._state.db == other._state.db if one._state.db and other._state.db else None

    def _routed(self, row: Model) -> bool:
        return row._meta.app_label == APP or row._meta.app_label in self.plane_apps

    def allow_migrate(self, db: str, app_label: str, model_name: str | None = None, **hints: Any) -> bool | None:
        """Spine tables on the spine only; plane tables on planes and on the spine (untenanted work lives there).

        An operation without a model (``RunPython``) of our own app runs wherever our tables are.
        """
        spine, planes = config().spine, _aliases()
        if app_label == APP:
            if model_name is not None and model_name.lower() in _ON_SPINE:
                return db == spine
            return db in planes
        if app_label in self.plane_apps:
            return db in planes
        return False if db in planes and db != spine else None


def _aliases() -> frozenset[str]:
    """Every database that may hold executions: the planes', and the spine's own."""
    return frozenset({config().spine, *config().planes.values(), *_registered()})


def _registered() -> set[str]:
    try:
        return {plane.database for plane in all_planes().values()}
    except (ProgrammingError, OperationalError) as error:
        if is_disconnect(error):
            raise
        # The table of planes does not exist yet: this question is asked by the migration that makes it.
        return set()
