"""Events: waits for what anybody has published."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django_durable.authoring.operations.base import Duration, operation
from django_durable.authoring.operations.waiting import Waiting
from django_durable.authoring.source import check_match
from django_durable.engine.events import Topic
from django_durable.engine.transitions.wait import Terms
from django_durable.errors import EventTimeout
from django_durable.models.columns import check_name
from django_durable.payloads import decode


class Events(Waiting):
    """``ctx.wait_for_event``."""

    @operation
    def wait_for_event(
        self,
        name: str,
        match: Mapping[Any, Any] | None = None,
        timeout: Duration | None = None,
        until: datetime | None = None,
    ) -> Any:
        """The payload of the oldest event of this name that this execution has not taken.

        It was published since the execution was created and is still within ``EVENT_RETENTION``; its payload, a
        dict, has all items of ``match``, equal in value and type. Raises ``EventTimeout`` at the deadline.
        """
        check_name(name, "event name")
        topic = Topic.of(name, check_match(match))
        _position, encoded = self._receive(
            "event",
            name,
            timeout,
            until,
            lambda position: EventTimeout(f"no event {name!r} arrived in time", position=position),
            lambda _position: [],
            lambda _position, _until: Terms(sources=[topic]),
        )
        return decode(encoded)
