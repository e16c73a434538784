"""Updates: messages that were checked before they were stored, and that can be answered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django_durable.authoring.operations.base import Duration, operation
from django_durable.authoring.operations.waiting import Waiting
from django_durable.authoring.update import Update
from django_durable.engine.messages import answer
from django_durable.errors import UpdateTimeout
from django_durable.models.columns import check_name
from django_durable.payloads import decode, encode


class Updates(Waiting):
    """``ctx.wait_for_update`` and the replies to what it returned."""

    @operation
    def wait_for_update(self, name: str, timeout: Duration | None = None, until: datetime | None = None) -> Update:
        """The next unread update of this name, in order of acceptance, also one from before.

        Raises ``UpdateTimeout`` at the deadline, which is stored once when the wait is first reached.
        """
        check_name(name, "update name")
        position, encoded = self._receive(
            "update",
            name,
            timeout,
            until,
            lambda position: UpdateTimeout(f"no update {name!r} arrived in time", position=position),
            lambda _position: [f"update:{name}"],
        )
        return self._update(name, position, decode(encoded))

    def _update(self, name: str, position: int, payload: Any) -> Update:
        """The update that the wait at this position took."""
        return Update(name, payload, lambda value: self._reply(name, position, value))

    @operation
    def _reply(self, name: str, taken_by: int, value: Any) -> None:
        session = self._session
        encoded = encode(value, where=f"reply to update {name!r}")
        position, record = session.enter("reply", name)
        if record is not None:
            return
        now = session.claim.now()
        written = answer(session.claim.using, session.claim.id, taken_by, encoded)
        more = {"encoded_output": encoded, "started_at": now, "finished_at": now}
        session.append(position, "reply", name, "completed", beside=[written], **more)
