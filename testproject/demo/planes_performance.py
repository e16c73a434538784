"""PlanesPerformance: the demo with tenants on data planes, one of which goes away, and one of which comes later."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from django.core.management import call_command
from django.db import OperationalError, connections

from django_durable import Execution, PlaneUnavailable
from django_durable.models import DispatchHint, Outbox, TenantPlacement
from django_durable.planes import place_tenant, register_plane
from testproject.demo.body_log import BodyLog
from testproject.demo.evidence import Evidence, gather
from testproject.demo.fleet import Deed
from testproject.demo.killer import Kill
from testproject.demo.moving import move, pause_all, stands_still
from testproject.demo.performance import Performance
from testproject.demo.plan import Plan
from testproject.demo.planes import NORTH, SOUTH, WEST, Planes
from testproject.demo.planes_table import planes_table
from testproject.demo.planes_verdict import judge_planes
from testproject.demo.stage import Stage
from testproject.demo.story import Move, Story
from testproject.demo.verdict import Check
from testproject.shop.models import Order

__all__ = ["perform_on_planes"]

PATIENCE_SECONDS = 60.0
"""How much longer than planned the plane stays down for the tenants of the others to finish something."""


class PlanesPerformance(Performance):
    """One run: the spine, north and south; south goes away and comes back; west is added, two tenants move there."""

    def __init__(self, plan: Plan, stage: Stage, planes: Planes) -> None:
        super().__init__(plan, stage)
        self._planes = planes
        self._homes = {f"tenant-{number:02d}": (NORTH, SOUTH)[number % 2] for number in range(plan.tenants)}
        self._numbers = itertools.count(1)
        self._orders: dict[str, list[int]] = {tenant: [] for tenant in self._homes}
        self._refused: list[str] = []
        self._moves: dict[str, Move] = {}
        self._down_at = self._up_at = datetime.now(UTC)

    def _migrate(self) -> None:
        super()._migrate()
        for alias in (NORTH, SOUTH):
            call_command("migrate", database=alias, verbosity=0)
        for tenant, plane in self._homes.items():
            place_tenant(tenant, plane)

    def _play(self) -> None:
        tenants = list(self._homes)
        self._place(tenants)
        self._until(lambda: BodyLog().ended_count() >= len(tenants), "hardly any step had run")
        self._stop_south()
        self._start_south()
        self._add_west()
        movers = [next(t for t, home in self._homes.items() if home == plane) for plane in (NORTH, SOUTH)]
        self._place([*self._refused, *(tenant for tenant in tenants if tenant not in movers)])
        self._move(movers)
        self._until(self._all_ended, "executions had not ended")
        self._say("every execution has ended")

    def _all_ended(self) -> bool:
        return not any(Execution.objects.using(alias).active().exists() for alias in self._planes.urls)

    # -- the acts ------------------------------------------------------------------------------------------------

    def _place(self, tenants: list[str]) -> list[str]:
        """One order of each; the tenants whose plane is unavailable, who may try again later."""
        placed: list[Execution[object]] = []
        refused: list[str] = []
        for tenant in tenants:
            number = next(self._numbers)
            try:
                placed.append(self._take_order(number, tenant))
            except (PlaneUnavailable, OperationalError):
                refused.append(tenant)
            else:
                self._orders[tenant].append(number)
        self._reviewer.expect(placed)
        told = f", refused since their plane is away: {len(refused)}" if refused else ""
        self._say(f"orders placed: {len(placed)}{told}")
        return refused

    def _stop_south(self) -> None:
        """For the planned time, and until every other tenant has finished something."""
        connections[SOUTH].close()
        if self._planes.holds_files:
            running = BodyLog().open_bodies()
            gone = self._fleet.kill_all()
            deeds = [Kill(body=one, deed=Deed(pid=one.pid, text="")) for one in running if one.pid in gone]
            self._killer.note(deeds)
        self._planes.stop()
        self._down_at = datetime.now(UTC)
        self._fleet.refill()
        self._say(f"{SOUTH} is down: {self._planes.stopping}")
        self._refused = self._place(list(self._homes))
        began, least = time.monotonic(), self._plan.outage.total_seconds()
        healthy = {tenant for tenant, plane in self._homes.items() if plane != SOUTH}

        def long_enough() -> bool:
            seconds = time.monotonic() - began
            return seconds >= least and (self._finished() >= healthy or seconds >= least + PATIENCE_SECONDS)

        self._until(long_enough, f"{SOUTH} had not come back")

    def _start_south(self) -> None:
        finished = len(self._finished())
        self._up_at = datetime.now(UTC)
        self._planes.start()
        self._say(f"{SOUTH} is back; meanwhile {finished} tenants of {NORTH} have finished executions")

    def _finished(self) -> set[str]:
        done = Execution.objects.using(NORTH).filter(status="completed", finished_at__gte=self._down_at)
        return set(done.values_list("tenant", flat=True))

    def _add_west(self) -> None:
        register_plane(WEST, WEST)
        call_command("migrate", database=WEST, verbosity=0)
        self._say(f"{WEST} is added")

    def _move(self, tenants: list[str]) -> None:
        """Each with an order that has just been placed, while everybody else's work goes on."""
        self._place(tenants)
        unfinished = {tenant: pause_all(tenant) for tenant in tenants}
        for tenant in tenants:
            source = self._homes[tenant]
            self._until(lambda name=tenant: stands_still(name), f"{tenant} did not stand still")  # type: ignore[misc]
            move(tenant, WEST, self._orders[tenant])
            self._moves[tenant] = Move(source=source, target=WEST, unfinished=unfinished[tenant])
            self._say(f"{tenant} has moved from {source} to {WEST}, executions under way: {unfinished[tenant]}")

    # -- the end -------------------------------------------------------------------------------------------------

    def _gather(self, findings: list[str]) -> Evidence:
        return gather(self._killer.all_kills, findings, self._losses, list(self._planes.urls))

    def _judge(self, evidence: Evidence) -> list[Check]:
        return [*super()._judge(evidence), *judge_planes(evidence, self._tell_story(), outage=self._plan.outage)]

    def _table(self, evidence: Evidence) -> str:
        return f"{super()._table(evidence)}\n\n{planes_table(evidence, self._tell_story())}"

    def _tell_story(self) -> Story:
        return Story(
            placements=dict(TenantPlacement.objects.values_list("tenant", "plane")),
            stopped=SOUTH,
            stopped_tenants=frozenset(tenant for tenant, home in self._homes.items() if home == SOUTH),
            down_at=self._down_at,
            up_at=self._up_at,
            refused=len(self._refused),
            moves=self._moves,
            leftovers=list(self._leftovers()),
        )

    def _leftovers(self) -> Iterator[str]:
        if hints := DispatchHint.objects.count():
            yield f"{hints} dispatch hints"
        if executions := Execution.objects.using("default").count():
            yield f"{executions} executions on the spine"
        owners = {number: tenant for tenant, numbers in self._orders.items() for number in numbers}
        placements = dict(TenantPlacement.objects.values_list("tenant", "plane"))
        for alias in self._planes.urls:
            if rows := Outbox.objects.using(alias).count():
                yield f"{rows} rows in the outbox of {alias}"
            for number in Order.objects.using(alias).values_list("pk", flat=True):
                if placements.get(owners.get(number, "")) != alias:
                    yield f"order {number} on {alias}"


def perform_on_planes(plan: Plan, stage: Stage, planes: Planes) -> bool:
    """Run the demo with these planes; whether everything held."""
    return PlanesPerformance(plan, stage, planes).run()
