"""What others send in the scenarios of updates, events, callbacks and approvals."""

from __future__ import annotations

from typing import Any

from django_durable import complete_callback
from django_durable.events import publish
from django_durable.models import Checkpoint, EventRow, Message, OperatorNote
from django_durable.payloads import decode
from django_durable.runtime.event_sweeps import tell_of_events
from tests.crash.acts import Act
from tests.crash.life import Violation
from tests.crash.places import here, rows
from tests.crash.run import Run

__all__ = ["approve", "complete", "publish_sold", "send_update", "tell"]


def send_update(payload: Any) -> Act:
    """Send the update ``add``; the client looks for its own payload before it tries again."""

    def done(run: Run) -> bool:
        mine = rows(Message).filter(execution_id=run.execution_id(), channel="update:add")
        stored = [text for text in mine.values_list("payload", flat=True) if decode(text) == payload]
        if len(stored) > 1:
            raise Violation(f"{len(stored)} messages are stored of one update")
        return bool(stored)

    return Act("sender", lambda run: run.execution().send_update("add", payload), done)


def publish_sold(number: int) -> Act:
    """Publish one event under a key of its own, which makes a repetition harmless."""

    def do(run: Run) -> None:
        tenant = here.tenant if here.apart else None
        publish("sold", {"mark": run.mark, "n": number}, tenant=tenant, dedup_key=f"{run.mark}-{number}")

    def done(run: Run) -> bool:
        stored = [decode(text)["n"] for text in rows(EventRow).values_list("payload", flat=True)]
        if stored.count(number) > 1:
            raise Violation("one event is stored twice")
        return number in stored

    return Act("sender", do, done)


def tell() -> Act:
    """The sweep that wakes those whom a publisher that died could not."""

    def done(run: Run) -> bool:
        return not rows(EventRow).filter(told_up_to__isnull=False).exists()

    return Act("sweeper", lambda run: tell_of_events(here.plane), done)


def complete(value: Any) -> Act:
    """Complete the run's callback; a repetition may find that it was the first."""

    def do(run: Run) -> None:
        made = rows(Checkpoint).get(execution_id=run.execution_id(), kind="callback")
        before = _completed(run)
        if complete_callback(decode(made.encoded_output or "null"), value) is before:
            raise Violation("a callback was decided twice, or nobody decided it")

    return Act("sender", do, lambda run: _completed(run))


def _completed(run: Run) -> bool:
    stored = rows(Message).filter(execution_id=run.execution_id(), channel__startswith="callback:").count()
    if stored > 1:
        raise Violation("a callback was decided twice")
    return bool(stored)


def approve() -> Act:
    """Approve what the run asks for."""

    def do(run: Run) -> None:
        before = _approved(run)
        if run.execution().decide("legal", approved=True, actor="ann") is before:
            raise Violation("an approval was decided twice, or not at all")

    return Act("operator", do, lambda run: _approved(run))


def _approved(run: Run) -> bool:
    return rows(OperatorNote).filter(execution_id=run.execution_id(), verb="approve").exists()
