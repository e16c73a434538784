"""The sweep: a scenario once to count its boundaries, then once for each boundary and each way of dying there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import connections, transaction
from django.db.models import Model

from django_durable import clock
from django_durable.authoring.registry import add_workflow
from django_durable.models import PLANE_MODELS, SPINE_MODELS, DataPlane, SweepClaim
from django_durable.planes.presence import forget_known
from testproject.shop.models import Order
from tests.crash import between, flows
from tests.crash.endstate import EndState
from tests.crash.faults import Boundary, Fault, Mode
from tests.crash.ledger import Ledger
from tests.crash.life import LONGEST, Violation, close_spare_connections
from tests.crash.places import here
from tests.crash.run import Observer, Run
from tests.crash.scenario import Scenario
from tests.crash.stage import stage

__all__ = ["Harness", "Swept"]


@dataclass(frozen=True, slots=True)
class Swept:
    """How many boundaries a scenario has, how many runs were made, and what did not hold."""

    boundaries: tuple[Boundary, ...]
    runs: int
    violations: tuple[str, ...]


class Harness:
    """Sweeps scenarios on this process's database, one run after another."""

    def __init__(self, folder: Path) -> None:
        self._home = here.plane
        self._marks = (f"m{number:05d}" for number in itertools.count(1))
        self._observer = Observer()
        self.ledger = Ledger(folder / "crash-ledger.sqlite3")
        self.ledger.create()

    def sweep(self, scenario: Scenario, modes: tuple[Mode, ...] | None = None, *, every: int = 1) -> Swept:
        """Run the scenario undisturbed, which must hold; then with every fault, collecting what does not.

        ``every``: one boundary in so many is struck, one commit in a quarter of that; others in each mode.
        """
        counted = Fault()
        self.run(scenario, counted)
        runs, violations = 1, []
        boundaries = counted.swept()
        for mode, boundary in itertools.product(modes or scenario.modes, boundaries):
            step = max(1, every // 4) if boundary.commits else every
            if not boundary.worth(mode) or (boundary.number + list(Mode).index(mode)) % step:
                continue
            fault = Fault(mode, boundary.number)
            runs += 1
            try:
                self.run(scenario, fault)
            except Violation as violation:
                violations.append(f"{fault}: {violation}")
            if fault.struck is None:
                violations.append(f"{fault}: this boundary was not reached")
        return Swept(tuple(boundaries), runs, tuple(violations))

    def run(self, scenario: Scenario, fault: Fault) -> None:
        """One run. Raises ``Violation``."""
        run = Run(
            next(self._marks),
            fault,
            self._observer,
            recover_at_once=scenario.recover_at_once,
            lasting=("completed",) if scenario.reopens else ("completed", "failed"),
        )
        with self._fresh():
            run.play(scenario.script(run), scenario.sweep_from)
            if here.apart:
                # An ending does not wait for its acknowledgement on the spine: that lapses with the lease.
                self._observer.recover().result(LONGEST)
            self._observer.see(lambda: EndState(scenario, run).check())

    @contextmanager
    def _fresh(self) -> Iterator[None]:
        stage.reset()
        forget_known()  # the rows that a run has left on the planes are gone
        here.live_on(self._home)
        self._observer.see(between.place)
        add_workflow(flows.three_steps)  # a run that broke off may have left it missing
        self.ledger.clear()
        try:
            with clock.shifted():
                yield
        finally:
            self._observer.see(_empty_tables)

    def close(self) -> None:
        """End the observer's threads, and close all connections."""
        self._observer.close()
        close_spare_connections()


def _empty_tables() -> None:
    kept = (SweepClaim, DataPlane)
    for alias in here.aliases:
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            models: tuple[type[Model], ...] = (*PLANE_MODELS, *SPINE_MODELS, Order)
            for model in models:
                if model not in kept:
                    cursor.execute(f"DELETE FROM {model._meta.db_table}")
