"""What is done in the scenarios of gathered events and of retention."""

from __future__ import annotations

from datetime import timedelta

from django_durable import PlaneUnavailable
from django_durable.engine.retention import Terms
from django_durable.engine.transitions.prune import BELONGINGS
from django_durable.events import publish
from django_durable.models import EventRow, Execution, ExecutionRoute, GatheredEvent, OperatorAction, PrunedExecution
from django_durable.operators.prune import prune
from django_durable.planes.places import place_on
from django_durable.planes.registry import name_of
from django_durable.runtime.gathering import start_gathered
from tests.crash.acts import Act
from tests.crash.faults import SPINE_LOST
from tests.crash.life import Violation
from tests.crash.places import here, rows
from tests.crash.run import Run

__all__ = ["left_nothing", "prune_all", "publish_saved", "start_all_gathered"]


def publish_saved(event: str, number: int) -> Act:
    """Publish an event that gathers, under a key of its own, which makes a repetition harmless."""

    def do(run: Run) -> None:
        tenant = here.tenant if here.apart else None
        publish(event, {"mark": run.mark, "n": number}, tenant=tenant, dedup_key=f"{run.mark}-{number}")

    def done(run: Run) -> bool:
        return rows(EventRow).filter(name=event, payload__contains=f'"n":{number}').exists()

    return Act("sender", do, done)


def start_all_gathered() -> Act:
    """The sweep that starts the runs of what has gathered."""
    return Act("sweeper", lambda run: start_gathered(here.plane), lambda run: not rows(GatheredEvent).exists())


def prune_all() -> Act:
    """An operator removes everything that has ended; who sees an error does it again."""

    def do(run: Run) -> None:
        terms = Terms(periods={}, older_than=timedelta())
        answers = prune(actor="ann", terms=terms, places=[place_on(here.plane)])
        if answers.away:
            raise PlaneUnavailable(answers.away[0].reason)

    return Act("operator", do, lambda run: not rows(Execution).exists() and not rows(PrunedExecution).exists())


def left_nothing(run: Run) -> None:
    """Every row of the pruned tree is gone, on the plane and on the spine, and who did it is told there."""
    left = {model.__name__: rows(model).count() for model in (*BELONGINGS, PrunedExecution)}
    if run.fault.mode not in SPINE_LOST:  # a spine of yesterday has the route again; its sweep takes an hour
        left["ExecutionRoute"] = rows(ExecutionRoute).filter(plane=name_of(here.plane)).count()
        if not rows(OperatorAction).filter(verb="prune", actor="ann").exists():
            raise Violation("nobody is said to have pruned")
    if any(left.values()):
        raise Violation(f"a pruned tree has left {left}")
