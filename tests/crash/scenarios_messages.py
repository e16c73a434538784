"""Scenarios of updates, events, callbacks, approvals, and of waits for whichever comes first."""

from __future__ import annotations

from django_durable.models import ApprovalRequest, EventTaken, EventWait, Message
from django_durable.payloads import decode
from tests.crash import flows_messages as flows
from tests.crash.acts import cancel, later, send, start, work
from tests.crash.acts_messages import approve, complete, publish_sold, send_update, tell
from tests.crash.life import Violation
from tests.crash.places import rows
from tests.crash.run import Run
from tests.crash.scenario import Scenario

__all__ = ["MESSAGES"]


def _replied(run: Run) -> None:
    replies = [decode(m.encoded_reply) for m in rows(Message).exclude(encoded_reply=None)]
    if replies != [[5, "done"]]:
        raise Violation(f"the sender was answered with {replies}")


def _took(number: int) -> None:
    taken, waits = rows(EventTaken).count(), rows(EventWait).count()
    if (taken, waits) != (number, 0):
        raise Violation(f"{taken} receipts, not {number}, and {waits} registrations are left")


def _closed(outcome: str) -> None:
    outcomes = list(rows(ApprovalRequest).values_list("outcome", flat=True))
    if outcomes != [outcome]:
        raise Violation(f"the approval requests say {outcomes}")


MESSAGES = [
    Scenario(
        name="update_with_a_reply",
        sweep_from=1,
        script=lambda run: [start(flows.answered), work(), send_update(5), work()],
        labels=("-1",),
        output=lambda mark: [5, f"{mark}-1 done"],
        check=_replied,
    ),
    Scenario(
        name="event_before_and_after_the_wait",
        sweep_from=1,
        script=lambda run: [
            *(start(flows.listening), publish_sold(1), tell(), work()),
            *(publish_sold(2), tell(), work(), publish_sold(3), tell(), work()),
        ],
        labels=("-1",),
        output=lambda mark: [1, f"{mark}-1 done", 2],
        check=lambda run: _took(2),
    ),
    Scenario(
        name="event_timeout",
        sweep_from=1,
        script=lambda run: [start(flows.event_timeout), work(), later(2), publish_sold(1), tell(), work()],
        labels=("-1",),
        output=lambda mark: ["late", f"{mark}-1 done"],
        check=lambda run: _took(0),
    ),
    Scenario(
        name="callback",
        sweep_from=1,
        script=lambda run: [start(flows.called_back), work(), complete({"n": 1}), work()],
        labels=("-1",),
        output=lambda mark: [f"{mark}-1 done", {"n": 1}],
    ),
    Scenario(
        name="approval",
        sweep_from=1,
        script=lambda run: [start(flows.approved), work(), approve(), work()],
        labels=("-1",),
        output=lambda mark: [True, "ann", f"{mark}-1 done"],
        notes={"approve": 1},
        check=lambda run: _closed("approved"),
    ),
    Scenario(
        name="approval_that_a_cancel_closes",
        sweep_from=2,
        script=lambda run: [start(flows.approved), work(), cancel(), work()],
        status=("cancelled",),
        notes={"cancel": 1},
        check=lambda run: _closed(""),
    ),
    Scenario(
        name="whichever_comes_first",
        sweep_from=1,
        script=lambda run: [
            *(start(flows.whichever), work(), send("word"), later(0.01), publish_sold(2), tell()),
            *(work(), send_update(3), work()),
        ],
        labels=("-last",),
        output=lambda mark: ["word", {"mark": mark, "n": 2}, 3, f"{mark}-last done"],
        check=lambda run: _took(1),
    ),
]
