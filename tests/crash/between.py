"""Between spine and planes: a spine that is emptied or is an older copy, and work elsewhere while a plane is down."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Model

from django_durable.models import (
    DispatchHint,
    Execution,
    ExecutionRoute,
    OperatorAction,
    TenantEpoch,
    TenantPlacement,
)
from django_durable.models.execution import TERMINAL
from django_durable.planes import place_tenant
from django_durable.runtime import sweeps
from tests.crash import flows
from tests.crash.life import Violation
from tests.crash.places import here

__all__ = [
    "NOTHING",
    "check_elsewhere",
    "copy_spine",
    "epoch_of",
    "place",
    "rebuild_spine",
    "replace_spine",
    "start_elsewhere",
]

Copy = dict[type[Model], list[Model]]

NOTHING: Copy = {}
OF_THE_SPINE: tuple[type[Model], ...] = (DispatchHint, ExecutionRoute, OperatorAction)


def place() -> None:
    """What an administrator has set up, and does again for a spine that was emptied: who lives where."""
    if here.tenant is None:
        return
    for tenant, plane in ((here.tenant, here.plane), *((_neighbour(one), one) for one in here.planes)):
        if not TenantPlacement.objects.using(here.spine).filter(pk=tenant).exists():
            place_tenant(tenant, plane)


def _neighbour(plane: str) -> str:
    """Another tenant, which lives there."""
    return f"neighbour-{plane}"


def copy_spine() -> Copy:
    """What a backup of the spine would hold now."""
    return {model: list(model._base_manager.using(here.spine)) for model in OF_THE_SPINE}


def replace_spine(copy: Copy, *, keep_placements: bool) -> None:
    """Put a copy in the spine's place."""
    emptied = OF_THE_SPINE if keep_placements else (*OF_THE_SPINE, TenantPlacement)
    with transaction.atomic(using=here.spine):
        for model in emptied:
            model._base_manager.using(here.spine).all().delete()
        for model, stored in copy.items():
            model._base_manager.using(here.spine).bulk_create(stored)


def rebuild_spine() -> None:
    """The administrator's part, and the sweeps', to their end."""
    place()
    for plane in here.planes:
        sweeps.relay_outbox(plane)
    hints = DispatchHint.objects.using(here.spine)
    before = set(hints.values_list("pk", flat=True))
    for plane in here.planes:
        sweeps.rebuild_everything(plane)
    hinted = set(hints.exclude(pk__in=before).values_list("execution_id", flat=True))
    for plane in here.planes:
        ended = Execution._base_manager.using(plane).filter(status__in=TERMINAL, pk__in=hinted)
        if ended.exists():
            raise Violation(f"{ended.count()} executions that have ended got a hint")


def start_elsewhere(mark: str, down: str) -> Execution[Any]:
    """A tenant of another plane starts something."""
    plane = next(one for one in here.planes if one != down)
    return flows.undisturbed.using(tenant=_neighbour(plane), key=mark).start()


def check_elsewhere(started: Execution[Any]) -> None:
    """It has been served, and the hints of the plane that is away are neither parked nor counted against."""
    status = Execution.objects.locate(started.pk).status
    if status != "completed":
        raise Violation(f"while one plane was down, the other's execution became {status}")
    hints = DispatchHint.objects.using(here.spine)
    if (held := hints.filter(failures__gt=0) | hints.filter(state=DispatchHint.State.PARKED)).exists():
        raise Violation(f"an outage was held against {held.count()} hints")


def epoch_of(tenant: str | None) -> int:
    """The tenant's epoch where it lives."""
    row = TenantEpoch.objects.using(here.plane).filter(pk=tenant).first()
    return 0 if row is None else row.epoch
