"""Approvals: waits for somebody's decision."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django_durable.authoring.approval import Approval
from django_durable.authoring.operations.base import Duration, operation
from django_durable.authoring.operations.waiting import Waiting
from django_durable.engine.telling import tell
from django_durable.engine.transitions.decide import channel_of, lapse, request
from django_durable.engine.transitions.wait import Terms
from django_durable.errors import ApprovalTimeout
from django_durable.models.columns import check_name
from django_durable.payloads import decode, encode
from django_durable.signals import approval_requested
from django_durable.sql import Sql

LONGEST_PROMPT = 10_000


class Approvals(Waiting):
    """``ctx.wait_for_approval``."""

    @operation
    def wait_for_approval(
        self,
        name: str,
        *,
        prompt: str = "",
        data: Any = None,
        permission: str | None = None,
        timeout: Duration | None = None,
        until: datetime | None = None,
    ) -> Approval:
        """Ask for a decision and wait for it: ``execution.decide(name, approved=…, actor=…)``.

        ``prompt`` and ``data`` are for the one who decides; ``permission`` (``"app.codename"``) is what a user
        needs for it. Raises ``ApprovalTimeout`` at the deadline, from which on it cannot be decided any more.
        """
        check_name(name, "approval name")
        check_name(prompt, "prompt", maximum=LONGEST_PROMPT, empty=True)
        check_name(permission or "", "permission", empty=True)
        asked = {
            "name": name,
            "prompt": prompt,
            "encoded_data": encode(data, where=f"data of approval {name!r}"),
            "permission": permission or "",
        }
        _position, encoded = self._receive(
            "approval",
            name,
            timeout,
            until,
            lambda position: ApprovalTimeout(f"approval {name!r} was not decided in time", position=position),
            lambda position: [channel_of(position)],
            lambda position, expires_at: self._terms(position, {**asked, "expires_at": expires_at}),
        )
        return Approval(**decode(encoded))

    def _terms(self, position: int, asked: dict[str, Any]) -> Terms:
        claim = self._session.claim

        def ask() -> list[Sql]:
            if position not in self._session.history:
                tell(claim.using, approval_requested, claim.id, name=asked["name"], position=position)
            return request(claim, position, asked)

        return Terms(asks=ask, lapses=lambda: lapse(claim, position))
