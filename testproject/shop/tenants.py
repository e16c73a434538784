"""Whose request it is: what ``DURABLE["TENANT_RESOLVER"]`` names, for a reader to copy."""

from __future__ import annotations

from django.http import HttpRequest

PREFIX = "tenant:"


def tenant_of(request: HttpRequest) -> str | None:
    """The tenant of the user's first group that is called ``tenant:…``; ``None`` for a user of no tenant.

    By what the server knows of the user, never by what the client says: a header or a parameter could name any.
    """
    if not request.user.is_authenticated:
        return None
    names = request.user.groups.filter(name__startswith=PREFIX).order_by("name").values_list("name", flat=True)
    first = names.first()
    return None if first is None else first.removeprefix(PREFIX)
