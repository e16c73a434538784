"""A database that cannot be reached is an answer of its own: 503, never "not found"."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from django_durable.database_errors import is_disconnect
from django_durable.errors import PlaneUnavailable

__all__ = ["or_unavailable"]

View = Callable[..., HttpResponseBase]
logger = logging.getLogger("django_durable.admin")


def or_unavailable(view: View) -> View:
    """The view, with a page that says "try again" where its database is away."""

    @wraps(view)
    def answering(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except (PlaneUnavailable, OperationalError, InterfaceError) as error:
            if not (isinstance(error, PlaneUnavailable) or is_disconnect(error)):
                raise  # a lock, a timeout, a mistake: no outage
            logger.warning("%s: the database cannot be reached (%s)", request.path, type(error).__name__)
            # Not the admin's own frame: it would ask the database for the user's permissions.
            context = {"changes": request.method == "POST"}
            return render(request, "admin/django_durable/unavailable.html", context, status=503)

    return answering
