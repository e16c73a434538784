"""Performance: the demo from the empty database to the verdict, told line by line."""

from __future__ import annotations

import random
import sys
import time
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.core.management import call_command
from django.db import transaction

from django_durable import Execution
from testproject.demo.body_log import BodyLog
from testproject.demo.celery_fleet import CeleryFleet
from testproject.demo.evidence import Evidence, ask_doctor, gather
from testproject.demo.fleet import EmbeddedFleet, Fleet
from testproject.demo.killer import Kill, Killer
from testproject.demo.plan import Plan
from testproject.demo.reviewer import Reviewer
from testproject.demo.stage import Stage
from testproject.demo.table import summary, table
from testproject.demo.verdict import judge
from testproject.shop.models import Order, OrderLine
from testproject.shop.workflows import fulfil

__all__ = ["perform"]

PRICES = [Decimal("3.90"), Decimal("12.50"), Decimal("29.95"), Decimal("104.00")]
LOOK_SECONDS = 0.02
ASK_SECONDS = 0.25


class Performance:
    """One run of the demo."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        self._plan, self._stage = plan, stage
        self._chance = random.Random(plan.seed)
        self._began_at = time.monotonic()
        kind: type[Fleet] = CeleryFleet if plan.celery else EmbeddedFleet
        self._fleet = kind(stage.folder, plan.workers)
        self._losses: list[str] = []
        self._order_ids: dict[UUID, int] = {}

    def run(self) -> bool:
        """Play it to its end; whether everything held."""
        plan = self._plan
        self._say(f"on {self._stage.database}; {self._fleet.what}: {plan.workers}; seed {plan.seed}")
        call_command("migrate", verbosity=0)
        self._fleet.start()
        executions = self._take_orders()
        self._say(f"orders placed: {len(executions)}, each in one transaction with the start of its execution")
        reviewer = Reviewer(executions, self._chance)
        reviewer.start()
        try:
            kills = self._watch(len(executions))
            self._say("asking doctor, then the workers to stop")
            findings = ask_doctor()
            self._losses += [*self._fleet.losses(), *self._fleet.stop()]
        finally:
            reviewer.close()
            self._fleet.destroy()
        if reviewer.error is not None:
            self._losses.append(f"the reviewer gave up: {reviewer.error!r}")
        return self._tell(gather(kills, findings, self._losses))

    def _take_orders(self) -> list[Execution[Any]]:
        return [self._take_order(number) for number in range(1, self._plan.orders + 1)]

    def _take_order(self, number: int) -> Execution[Any]:
        articles = self._chance.sample(range(len(PRICES)), k=self._chance.randint(1, 3))
        with transaction.atomic():
            order = Order.objects.create(customer_email=f"customer-{number}@example.com")
            OrderLine.objects.bulk_create(
                OrderLine(
                    order=order,
                    sku=f"article-{article}",
                    quantity=self._chance.randint(1, 3),
                    unit_price=PRICES[article],
                )
                for article in articles
            )
            start = fulfil.using(key=f"order-{order.pk}").start
            execution = start(order.pk, pause=self._plan.pause, patience=timedelta(minutes=10))
        self._order_ids[execution.pk] = order.pk
        return execution

    def _watch(self, orders: int) -> list[Kill]:
        """Kill now and then until every execution has ended, or the time is over."""
        bodies = orders * self._plan.steps
        killer = Killer(self._fleet, BodyLog(), wanted=self._plan.kills, bodies=bodies, chance=self._chance)
        deadline = time.monotonic() + self._plan.seconds
        asked_at = float("-inf")
        while time.monotonic() < deadline:
            if kill := killer.strike():
                order_id = self._order_ids[kill.body.execution_id]
                self._say(f"in the middle of {kill.body.step} of order {order_id}: {kill.deed.text}")
            elif losses := self._fleet.losses():
                self._losses += losses
                return killer.kills
            if time.monotonic() - asked_at > ASK_SECONDS:
                if not Execution.objects.active().exists():
                    self._say("every execution has ended")
                    return killer.kills
                asked_at = time.monotonic()
            time.sleep(LOOK_SECONDS)
        self._losses.append(f"executions had not ended after {self._plan.seconds:g} s")
        return killer.kills

    def _tell(self, evidence: Evidence) -> bool:
        checks = judge(evidence, orders=self._plan.orders)
        print(f"\n{table(evidence)}\n")
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
