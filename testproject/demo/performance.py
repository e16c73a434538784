"""Performance: the demo from the empty database to the verdict, told line by line."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, transaction

from django_durable import Execution
from django_durable.planes import plane_of
from testproject.demo.body_log import BodyLog
from testproject.demo.celery_fleet import CeleryFleet
from testproject.demo.evidence import Evidence, ask_doctor, gather
from testproject.demo.fleet import EmbeddedFleet, Fleet
from testproject.demo.killer import Killer
from testproject.demo.plan import Plan
from testproject.demo.reviewer import Reviewer
from testproject.demo.stage import Stage
from testproject.demo.table import summary, table
from testproject.demo.verdict import Check, judge
from testproject.shop.models import Order, OrderLine
from testproject.shop.workflows import fulfil

__all__ = ["Performance", "Spoilt", "perform"]

PRICES = [Decimal("3.90"), Decimal("12.50"), Decimal("29.95"), Decimal("104.00")]
LOOK_SECONDS = 0.02
ASK_SECONDS = 0.25


class Spoilt(Exception):
    """The performance cannot go on; ``losses`` says why."""

    def __init__(self, losses: list[str]) -> None:
        super().__init__("; ".join(losses))
        self.losses = losses


class Performance:
    """One run of the demo."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        self._plan, self._stage = plan, stage
        self._chance = random.Random(plan.seed)
        self._began_at = time.monotonic()
        kind: type[Fleet] = CeleryFleet if plan.celery else EmbeddedFleet
        self._fleet = kind(stage.folder, plan.workers)
        self._killer = Killer(
            self._fleet, BodyLog(), wanted=plan.kills, bodies=plan.orders * plan.steps, chance=self._chance
        )
        self._reviewer = Reviewer(self._chance)
        self._losses: list[str] = []
        self._order_ids: dict[UUID, int] = {}

    def run(self) -> bool:
        """Play it to its end; whether everything held."""
        plan = self._plan
        self._say(f"on {self._stage.database}; {self._fleet.what}: {plan.workers}; seed {plan.seed}")
        self._migrate()
        self._fleet.start()
        self._reviewer.start()
        try:
            try:
                self._play()
            except Spoilt as spoilt:
                self._losses += spoilt.losses
            self._say("asking doctor, then the workers to stop")
            findings = ask_doctor()
            self._losses += [*self._fleet.losses(), *self._fleet.stop()]
        finally:
            self._reviewer.close()
            self._fleet.destroy()
        if self._reviewer.error is not None:
            self._losses.append(f"the reviewer gave up: {self._reviewer.error!r}")
        return self._tell(self._gather(findings))

    def _migrate(self) -> None:
        call_command("migrate", verbosity=0)

    def _play(self) -> None:
        """Everything that happens while the workers run."""
        executions = [self._take_order(number) for number in range(1, self._plan.orders + 1)]
        self._say(f"orders placed: {len(executions)}, each in one transaction with the start of its execution")
        self._reviewer.expect(executions)
        self._until(self._all_ended, "executions had not ended")
        self._say("every execution has ended")

    def _all_ended(self) -> bool:
        return not Execution.objects.active().exists()

    def _take_order(self, number: int, tenant: str = "") -> Execution[Any]:
        """Order and execution in one transaction; a tenant's on its plane, which may be unavailable."""
        articles = self._chance.sample(range(len(PRICES)), k=self._chance.randint(1, 3))
        alias = plane_of(tenant) if tenant else DEFAULT_DB_ALIAS
        with transaction.atomic(using=alias):
            order = Order.objects.using(alias).create(pk=number, customer_email=f"customer-{number}@example.com")
            OrderLine.objects.using(alias).bulk_create(
                OrderLine(
                    order=order,
                    sku=f"article-{article}",
                    quantity=self._chance.randint(1, 3),
                    unit_price=PRICES[article],
                )
                for article in articles
            )
            start = fulfil.using(key=f"order-{order.pk}", tenant=tenant or None).start
            execution = start(order.pk, pause=self._plan.pause, patience=timedelta(minutes=10))
        self._order_ids[execution.pk] = order.pk
        return execution

    def _until(self, over: Callable[[], bool], problem: str) -> None:
        """Kill now and then until ``over()``, which is asked a few times a second. Raises ``Spoilt``."""
        asked_at = float("-inf")
        while True:
            if kill := self._killer.strike():
                order_id = self._order_ids[kill.body.execution_id]
                self._say(f"in the middle of {kill.body.step} of order {order_id}: {kill.deed.text}")
            elif losses := self._fleet.losses():
                raise Spoilt(losses)
            if time.monotonic() - asked_at > ASK_SECONDS:
                if over():
                    return
                asked_at = time.monotonic()
            if time.monotonic() - self._began_at > self._plan.seconds:
                raise Spoilt([f"{problem} after {self._plan.seconds:g} s"])
            time.sleep(LOOK_SECONDS)

    def _gather(self, findings: list[str]) -> Evidence:
        return gather(self._killer.all_kills, findings, self._losses)

    def _judge(self, evidence: Evidence) -> list[Check]:
        return judge(evidence, orders=self._plan.orders)

    def _table(self, evidence: Evidence) -> str:
        return table(evidence)

    def _tell(self, evidence: Evidence) -> bool:
        checks = self._judge(evidence)
        print(f"\n{self._table(evidence)}\n")
        for check in checks:
            print(check)
        success = all(check.holds for check in checks)
        print(
            f"\n{'Success' if success else 'FAILED'}: {summary(evidence, time.monotonic() - self._began_at)}",
            flush=True,
        )
        if not success:
            self._stage.keep = True
            print(f"The processes' logs are in {self._stage.folder}.\n{self._fleet.complaints()}", file=sys.stderr)
        return success

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began_at:5.1f} s  {text}", flush=True)


def perform(plan: Plan, stage: Stage) -> bool:
    """Run the demo on this stage; whether everything held."""
    return Performance(plan, stage).run()
