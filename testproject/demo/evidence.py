"""Evidence: what the database, the body log, the provider and the mailbox say when everything is over."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django_durable.models import Checkpoint, Execution
from testproject.demo.body_log import Body, BodyLog
from testproject.demo.killer import Kill
from testproject.demo.stage import ROOT
from testproject.shop.mailbox import Mailbox
from testproject.shop.models import Order
from testproject.shop.provider import Ledger, PaymentProvider

__all__ = ["Evidence", "Point", "Progress", "gather"]

DOCTOR_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One checkpoint."""

    position: int
    kind: str
    name: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One order: what the shop's table says of it, and how far its execution came."""

    order_id: int
    order_status: str
    total: Decimal
    execution_id: UUID
    execution_status: str
    review: Any
    points: list[Point]
    tenant: str = ""
    database: str = "default"
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that the verdict rests on."""

    orders: list[Progress]
    bodies: list[Body]
    ledger: Ledger
    messages: list[Mapping[str, Any]]
    kills: list[Kill]
    findings: list[str]
    """What ``doctor`` has found, one line each."""
    losses: list[str]
    """Processes that ended though nobody killed them, or did not end when asked to."""


def gather(
    kills: list[Kill], findings: list[str], losses: list[str], databases: Sequence[str] = ("default",)
) -> Evidence:
    """Read all of it, the executions from these databases. Nothing may be running any more."""
    orders = [one for database in databases for one in _progress(database)]
    return Evidence(
        orders=sorted(orders, key=lambda progress: progress.order_id),
        bodies=BodyLog().bodies(),
        ledger=PaymentProvider().ledger(),
        messages=list(Mailbox().messages()),
        kills=kills,
        findings=findings,
        losses=losses,
    )


def ask_doctor() -> list[str]:
    """What ``manage.py durable doctor`` finds, one line each; the workers should be running."""
    command = [sys.executable, str(ROOT / "manage.py"), "durable", "doctor", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DOCTOR_SECONDS)
    try:
        findings = json.loads(done.stdout)["findings"]
    except (ValueError, KeyError, TypeError):
        return [f"doctor gave no report (exit code {done.returncode}): {(done.stderr or done.stdout).strip()}"]
    lines = [f"{one['severity']}: {one['code']} ({one['count']})" for one in findings]
    if done.returncode and not lines:
        lines = [f"doctor ended with code {done.returncode}: {done.stderr.strip()}"]
    return lines


def _progress(database: str) -> list[Progress]:
    orders = {order.pk: order for order in Order.objects.using(database).all()}
    points: dict[UUID, list[Point]] = {}
    for row in Checkpoint.objects.using(database).order_by("execution_id", "position", "item"):
        point = Point(position=row.position, kind=row.kind, name=row.name.rpartition(".")[2], status=row.status)
        points.setdefault(row.execution_id, []).append(point)
    found = []
    for execution in Execution.objects.using(database).all():
        order_id = execution.input["order_id"]
        order = orders.get(order_id) or Order(pk=order_id, status="lost")
        found.append(
            Progress(
                order_id=order_id,
                order_status=order.status,
                total=order.total,
                execution_id=execution.pk,
                execution_status=execution.status,
                review=(execution.output or {}).get("review"),
                points=points.get(execution.pk, []),
                tenant=execution.tenant,
                database=database,
                finished_at=execution.finished_at,
            )
        )
    return found
