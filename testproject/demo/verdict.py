"""What has to hold when everything is over, each check with a text of what it saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from testproject.demo.body_log import Body
from testproject.demo.evidence import Evidence, Progress
from testproject.demo.killer import interrupted, runs_in

__all__ = ["REQUIRED_KILLS", "REQUIRED_STEPS", "Check", "judge", "repeated", "times_run"]

REQUIRED_KILLS = 5
REQUIRED_STEPS = 5
MENTIONED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that has to hold, and the exceptions that were found."""

    claim: str
    exceptions: list[str]

    @property
    def holds(self) -> bool:
        """Whether there was no exception."""
        return not self.exceptions

    def __str__(self) -> str:
        if self.holds:
            return f"ok      {self.claim}"
        more = len(self.exceptions) - MENTIONED
        told = "; ".join([*self.exceptions[:MENTIONED], *([f"and {more} more"] if more > 0 else [])])
        return f"FAILED  {self.claim} -- {told}"


def judge(evidence: Evidence, *, orders: int) -> list[Check]:
    """Every check; the demo has succeeded if all of them hold."""
    charges = len(evidence.ledger.charges)
    return [
        Check(
            claim=f"every order is shipped and its execution completed ({orders})",
            exceptions=_unfinished(evidence, orders),
        ),
        Check(
            claim=f"every order has at least {REQUIRED_STEPS} recorded steps, a sleep, a signal",
            exceptions=[problem for one in evidence.orders for problem in _gaps(one)],
        ),
        Check(
            claim=f"the provider's ledger: every order was charged exactly once (charges: {charges})",
            exceptions=list(_wrong_charges(evidence)),
        ),
        Check(claim="every e-mail was sent exactly once", exceptions=list(_wrong_messages(evidence))),
        Check(
            claim="no step ran again once its result was recorded",
            exceptions=[
                f"{body.step} of execution {body.execution_id}, position {body.position}"
                for body in repeated(evidence)
            ],
        ),
        Check(claim="every recorded step has a body that ran to its end", exceptions=list(_made_up(evidence))),
        Check(
            claim=f"workers were killed in mid-step at least {REQUIRED_KILLS} times",
            exceptions=_too_few_kills(evidence),
        ),
        Check(
            claim="nothing else interrupted a body, and every worker stopped when asked to",
            exceptions=[*_unexplained(evidence), *evidence.losses],
        ),
        Check(claim="doctor finds nothing", exceptions=evidence.findings),
    ]


def repeated(evidence: Evidence) -> list[Body]:
    """Bodies that began although their step's result was recorded already."""
    return [body for body in evidence.bodies if body.checkpointed]


def times_run(evidence: Evidence, progress: Progress) -> dict[str, int]:
    """How often the body of each step of this order began."""
    return Counter(body.step for body in evidence.bodies if body.execution_id == progress.execution_id)


def _unfinished(evidence: Evidence, orders: int) -> list[str]:
    found = [
        f"order {one.order_id} is {one.order_status} and its execution {one.execution_status}"
        for one in evidence.orders
        if (one.order_status, one.execution_status) != ("shipped", "completed")
    ]
    if len(evidence.orders) != orders:
        found.append(f"there are {len(evidence.orders)} executions")
    return found


def _gaps(one: Progress) -> Iterator[str]:
    done = Counter(point.kind for point in one.points if point.status == "completed")
    if done["step"] < REQUIRED_STEPS or done["sleep"] != 1 or done["signal"] != 1:
        yield f"order {one.order_id} has {dict(done)}"
    if [point.position for point in one.points] != list(range(len(one.points))):
        yield f"order {one.order_id} has positions {[point.position for point in one.points]}"
    if (one.review or {}).get("order") != one.order_id:
        yield f"order {one.order_id} has got the review {one.review!r}"


def _wrong_charges(evidence: Evidence) -> Iterator[str]:
    taken = Counter(row["order_id"] for row in evidence.ledger.charges)
    for one in evidence.orders:
        if taken.pop(one.order_id, 0) != 1:
            rows = [row for row in evidence.ledger.charges if row["order_id"] == one.order_id]
            yield f"order {one.order_id} was charged {len(rows)} times"
        elif evidence.ledger.balance(one.order_id) != one.total or one.total <= Decimal(0):
            yield f"order {one.order_id} costs {one.total} and has paid {evidence.ledger.balance(one.order_id)}"
    yield from (f"order {order_id} was charged and does not exist" for order_id in taken)


def _wrong_messages(evidence: Evidence) -> Iterator[str]:
    subjects = Counter(message["subject"] for message in evidence.messages)
    for one in evidence.orders:
        for text in ("Reserve for order {}", "Receipt for order {}", "Order {} is on its way"):
            subject = text.format(one.order_id)
            if (count := subjects.pop(subject, 0)) != 1:
                yield f"{subject!r} was sent {count} times"
    yield from (f"{subject!r} was sent and nobody asked for it" for subject in subjects)


def _made_up(evidence: Evidence) -> Iterator[str]:
    returned = {(body.execution_id, body.position) for body in evidence.bodies if body.outcome == "returned"}
    for one in evidence.orders:
        for point in one.points:
            recorded = point.kind == "step" and point.status == "completed"
            if recorded and (one.execution_id, point.position) not in returned:
                yield f"{point.name} of order {one.order_id}"


def _too_few_kills(evidence: Evidence) -> list[str]:
    count = len(interrupted(evidence.kills, evidence.bodies))
    return [f"only {count}"] if count < REQUIRED_KILLS else []


def _unexplained(evidence: Evidence) -> Iterator[str]:
    killed = {kill.deed.pid for kill in evidence.kills}
    for body in evidence.bodies:
        if not body.ended and not runs_in(body, killed):
            yield f"{body.step} in process {body.pid}, which nobody had killed"
