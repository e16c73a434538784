"""Moving: a tenant with its executions and its orders to another plane, by what a project's operator has at hand.

``move_tenant`` takes what is the engine's. The shop's own rows are the shop's: no step may change them while they are
copied, so the tenant's executions are paused before and resumed afterwards.
"""

from __future__ import annotations

from django.db import transaction

from django_durable import Execution, InvalidTransition
from django_durable.models import ExecutionQuerySet
from django_durable.planes import move_tenant, plane_of
from testproject.shop.models import Order, OrderLine

__all__ = ["move", "pause_all", "stands_still"]

ACTOR = "the demo"


def pause_all(tenant: str) -> int:
    """Ask every execution of the tenant that has not ended to stand still; how many."""
    executions = list(_unfinished(tenant).exclude(status="paused"))
    for execution in executions:
        try:
            execution.pause(actor=ACTOR, reason="the tenant moves")
        except InvalidTransition:
            pass  # it has ended in the meantime, or has been asked already
    return _unfinished(tenant).count()


def stands_still(tenant: str) -> bool:
    """Whether no body of the tenant runs or can begin any more."""
    return not _unfinished(tenant).exclude(status="paused").exists()


def move(tenant: str, target: str, orders: list[int]) -> None:
    """Move a tenant that stands still, with the orders of these numbers, and let it go on."""
    source = plane_of(tenant)
    _copy(source, target, orders)
    move_tenant(tenant, target, actor=ACTOR)
    with transaction.atomic(using=source):
        OrderLine.objects.using(source).filter(order_id__in=orders).delete()
        Order.objects.using(source).filter(pk__in=orders).delete()
    for execution in _unfinished(tenant):
        execution.resume(actor=ACTOR)


def _unfinished(tenant: str) -> ExecutionQuerySet:
    return Execution.objects.using(plane_of(tenant)).filter(tenant=tenant).active()


def _copy(source: str, target: str, orders: list[int]) -> None:
    lines = list(OrderLine.objects.using(source).filter(order_id__in=orders).order_by("pk"))
    for line in lines:
        line.pk = None  # the numbers of lines are a plane's own
    with transaction.atomic(using=target):
        Order.objects.using(target).bulk_create(Order.objects.using(source).filter(pk__in=orders))
        OrderLine.objects.using(target).bulk_create(lines)
