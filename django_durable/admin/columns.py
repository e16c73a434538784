"""What several lists show: times, ages, links to executions, statuses, the types of errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Model
from django.db.models.functions import Left
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.timesince import timesince

from django_durable.admin.reader import Reader
from django_durable.conf import config
from django_durable.models import Status

__all__ = [
    "age",
    "complete_error_types",
    "error_start",
    "execution_link",
    "execution_url",
    "moment",
    "status_badge",
    "type_in",
]

TYPE: Final = re.compile(r'\{"type":\s?"((?:[^"\\]|\\.)*)"')
TYPE_LENGTH: Final = 300
"""Characters from the beginning of a stored error; its type stands first."""


def moment(at: datetime | None) -> str | None:
    """A time to the second in the current time zone, marked up for machines."""
    if at is None:
        return None
    local = timezone.localtime(at) if timezone.is_aware(at) else at
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), local.strftime("%Y-%m-%d %H:%M:%S"))


def age(at: datetime | None) -> str | None:
    """How long ago a time was, the time itself when pointed at."""
    if at is None:
        return None
    words = timesince(at, timezone.now(), depth=1)
    return format_html('<time datetime="{0}" title="{0}">{1}</time>', at.isoformat(), words)


def status_badge(status: str) -> str:
    """A status with its colour."""
    label = Status(status).label if status in Status.values else status
    return format_html('<span class="durable-status durable-{}">{}</span>', status, label)


def execution_url(execution_id: UUID, site: str) -> str:
    """Address of an execution's page on this admin site."""
    return reverse("admin:django_durable_execution_change", args=[execution_id], current_app=site)


def execution_link(execution_id: UUID, site: str) -> str:
    """A link to an execution's page."""
    return format_html('<a href="{}">{}</a>', execution_url(execution_id, site), execution_id)


def complete_error_types(rows: Iterable[Model], using: str) -> None:
    """Give each row ``error_type``, the class that its stored error names: one query for a page's rows.

    Only the beginning of an error leaves the database, unless a codec has made the text opaque.
    """
    found = {row.pk: row for row in rows}
    for row in found.values():
        row.__dict__["error_type"] = None
    if not found:
        return
    model = type(next(iter(found.values())))
    failed = model._base_manager.using(using).filter(pk__in=list(found), encoded_error__isnull=False)
    for pk, text in failed.values_list("pk", error_start()):
        found[pk].__dict__["error_type"] = type_in(text)


def error_start() -> Any:
    """What has to be read of a stored error to know its type."""
    return F("encoded_error") if config().codecs else Left("encoded_error", TYPE_LENGTH)


def type_in(text: str) -> str:
    """The short name of the error's class, of a stored error or of its beginning."""
    found = TYPE.match(text)
    if found is None:
        failure = Reader(payloads=False).failure(text)
        return failure.short_type if failure else ""
    try:
        name = str(json.loads(f'"{found[1]}"'))
    except ValueError:
        name = found[1]
    return name.rpartition(".")[2]
