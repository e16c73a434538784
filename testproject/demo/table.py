"""The table of orders, steps and how often each body ran, and the last line."""

from __future__ import annotations

from collections import Counter

from testproject.demo.evidence import Evidence, Progress
from testproject.demo.killer import interrupted
from testproject.demo.verdict import repeated, times_run

__all__ = ["aligned", "summary", "table"]


def table(evidence: Evidence) -> str:
    """One line an order: a column for each step with how often its body began, and what the provider took."""
    steps = _steps(evidence)
    head = ["order", "execution", *steps, "charged"]
    rows = [_row(evidence, one, steps) for one in evidence.orders]
    begun = Counter(body.step for body in evidence.bodies)
    total = ["bodies", "begun", *[str(begun[step]) for step in steps], str(len(evidence.ledger.charges))]
    return aligned(head, rows, [total], left={1})


def aligned(head: list[str], rows: list[list[str]], totals: list[list[str]], *, left: set[int]) -> str:
    """Lines with a ruler below the head and above the totals; the columns ``left`` are flush left."""
    widths = [max(len(line[at]) for line in [head, *rows, *totals]) for at in range(len(head))]
    ruler = ["-" * width for width in widths]
    return "\n".join(_line(line, widths, left) for line in [head, ruler, *rows, ruler, *totals])


def summary(evidence: Evidence, seconds: float) -> str:
    """The numbers of the run."""
    points = [point for one in evidence.orders for point in one.points]
    steps = sum(point.kind == "step" and point.status == "completed" for point in points)
    begun, ended = len(evidence.bodies), sum(body.ended for body in evidence.bodies)
    parts = [
        f"orders {len(evidence.orders)}",
        f"steps recorded {steps}",
        f"workers killed in mid-step {len(interrupted(evidence.kills, evidence.bodies))}",
        f"bodies begun {begun}",
        f"ended {ended}",
        f"cut short {begun - ended}",
        f"begun after their result was recorded {len(repeated(evidence))}",
        f"{seconds:.1f} s",
    ]
    return ", ".join(parts)


def _steps(evidence: Evidence) -> list[str]:
    """The steps' names in the order of their positions."""
    positions = {
        point.name: point.position for one in evidence.orders for point in one.points if point.kind == "step"
    }
    return sorted(positions, key=lambda name: positions[name])


def _row(evidence: Evidence, one: Progress, steps: list[str]) -> list[str]:
    times = times_run(evidence, one)
    charges = sum(row["order_id"] == one.order_id for row in evidence.ledger.charges)
    charged = f"{charges} x {one.total}"
    return [str(one.order_id), one.execution_status, *[str(times.get(step, 0)) for step in steps], charged]


def _line(cells: list[str], widths: list[int], left: set[int]) -> str:
    padded = [
        cell.ljust(width) if at in left else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
