"""The table of tenants and planes."""

from __future__ import annotations

from testproject.demo.evidence import Evidence
from testproject.demo.story import Story, of_tenant, while_down
from testproject.demo.table import aligned
from testproject.demo.verdict import times_run

__all__ = ["planes_table"]


def planes_table(evidence: Evidence, story: Story) -> str:
    """One line a tenant, then one a plane."""
    head = ["tenant", "plane", "orders", "completed", f"while {story.stopped} was down", "bodies begun", "charges"]
    tenants = [
        [tenant, _way(story, tenant), *_numbers(evidence, story, [tenant])] for tenant in sorted(story.placements)
    ]
    planes = []
    for plane in sorted(set(story.placements.values())):
        living = [tenant for tenant, home in story.placements.items() if home == plane]
        planes.append([f"{len(living)} tenants", plane, *_numbers(evidence, story, living)])
    return aligned(head, tenants, planes, left={0, 1})


def _way(story: Story, tenant: str) -> str:
    move = story.moves.get(tenant)
    return story.placements[tenant] if move is None else f"{move.source} > {move.target}"


def _numbers(evidence: Evidence, story: Story, tenants: list[str]) -> list[str]:
    orders = [one for tenant in tenants for one in of_tenant(evidence, tenant)]
    numbers = {one.order_id for one in orders}
    return [
        str(len(orders)),
        str(sum(one.execution_status == "completed" for one in orders)),
        str(sum(while_down(evidence, story, tenant) for tenant in tenants)),
        str(sum(sum(times_run(evidence, one).values()) for one in orders)),
        str(sum(row["order_id"] in numbers for row in evidence.ledger.charges)),
    ]
