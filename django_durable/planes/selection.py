"""The spine's alias, and the alias on which a tenant's executions live."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django_durable.conf import config

_selected: ContextVar[str | None] = ContextVar("django_durable_plane", default=None)


def spine_alias() -> str:
    """Alias of the database that holds the hints."""
    return config().spine


def plane_alias(tenant: str) -> str:
    """Alias of the database that holds this tenant's executions: the spine's while no plane is configured."""
    return _selected.get() or spine_alias()


@contextmanager
def selected(alias: str) -> Iterator[None]:
    """Select a plane by its alias for the length of a turn, a retry, a callback."""
    token = _selected.set(alias)
    try:
        yield
    finally:
        _selected.reset(token)
