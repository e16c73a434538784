"""Scenarios of events that start one run together, and of retention."""

from __future__ import annotations

from tests.crash import flows, flows_flow  # noqa: F401
from tests.crash.acts import later, send, start, work
from tests.crash.acts_flow import left_nothing, prune_all, publish_saved, start_all_gathered
from tests.crash.scenario import Scenario

__all__ = ["FLOW"]

FLOW = [
    Scenario(
        name="debounced_events",
        script=lambda run: [
            *(publish_saved("crash.saved", 1), publish_saved("crash.saved", 2)),
            *(later(1), start_all_gathered(), work()),
        ],
        labels=("-1",),
        output=lambda mark: [2, f"{mark}-1 done"],
    ),
    Scenario(
        name="batched_events",
        script=lambda run: [
            *(publish_saved("crash.line", 1), publish_saved("crash.line", 2)),
            *(later(1), start_all_gathered(), work()),
        ],
        labels=("-1",),
        output=lambda mark: [[1, 2], f"{mark}-1 done"],
    ),
    Scenario(
        name="retention",
        sweep_from=4,
        script=lambda run: [start(flows.one_signal), work(), send("yes"), work(), prune_all()],
        labels=("-0", "-2"),
        times={"-0": 1, "-2": 1},
        executions=0,
        check=left_nothing,
    ),
]
