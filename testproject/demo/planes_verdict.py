"""What has to hold of the data planes when everything is over, beside what has to hold of the orders."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from testproject.demo.evidence import Evidence
from testproject.demo.plan import ROUNDS
from testproject.demo.story import Story, of_tenant, while_down
from testproject.demo.verdict import Check

__all__ = ["judge_planes"]


def judge_planes(evidence: Evidence, story: Story, *, outage: timedelta) -> list[Check]:
    """Every check of the planes."""
    healthy = sorted(set(story.placements) - story.stopped_tenants)
    ended = sum(while_down(evidence, story, tenant) for tenant in healthy)
    moved = ", ".join(f"{tenant} {move.source} > {move.target}" for tenant, move in sorted(story.moves.items()))
    return [
        Check(
            claim=f"every tenant has its orders, on its own plane and on no other ({len(story.placements)} tenants)",
            exceptions=list(_misplaced(evidence, story)),
        ),
        Check(
            claim=f"{story.stopped} was down for {story.down_seconds:.1f} s: nothing ended there, and orders were"
            f" refused ({story.refused}) and placed later",
            exceptions=list(_not_down(evidence, story, outage)),
        ),
        Check(
            claim=f"every tenant of the other planes finished an execution while {story.stopped} was down"
            f" ({ended} executions of {len(healthy)} tenants)",
            exceptions=[tenant for tenant in healthy if not while_down(evidence, story, tenant)],
        ),
        Check(
            claim=f"tenants moved to a plane that was added on the way, with executions that had not ended: {moved}",
            exceptions=list(_not_moved(evidence, story)),
        ),
        Check(claim="nothing is left on its way, or on the spine but ids", exceptions=story.leftovers),
    ]


def _misplaced(evidence: Evidence, story: Story) -> Iterator[str]:
    for tenant, plane in sorted(story.placements.items()):
        orders = of_tenant(evidence, tenant)
        if len(orders) != ROUNDS:
            yield f"{tenant} has {len(orders)} executions, not {ROUNDS}"
        for one in orders:
            if one.database != plane:
                yield f"order {one.order_id} of {tenant} is on {one.database}, not on {plane}"
    for one in evidence.orders:
        if one.tenant not in story.placements:
            yield f"order {one.order_id} is of tenant {one.tenant!r}, who is placed nowhere"


def _not_down(evidence: Evidence, story: Story, outage: timedelta) -> Iterator[str]:
    if story.down_seconds < outage.total_seconds():
        yield f"it was down for less than {outage.total_seconds():g} s"
    if story.refused != len(story.stopped_tenants):
        yield f"{story.refused} orders were refused, of {len(story.stopped_tenants)} tenants"
    for tenant in sorted(story.stopped_tenants):
        if ended := while_down(evidence, story, tenant):
            yield f"{ended} executions of {tenant} ended in that time"


def _not_moved(evidence: Evidence, story: Story) -> Iterator[str]:
    if len(story.moves) < 2:
        yield f"only {len(story.moves)} have moved"
    for tenant, move in sorted(story.moves.items()):
        if story.placements.get(tenant) != move.target:
            yield f"{tenant} is placed on {story.placements.get(tenant)}"
        if not move.unfinished:
            yield f"{tenant} had nothing under way when it moved"
