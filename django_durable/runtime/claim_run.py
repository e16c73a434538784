"""Run what was claimed: an execution's turn, or one attempt of a step elsewhere."""

from __future__ import annotations

import threading

from django_durable.engine.claimed import Claimed
from django_durable.engine.lease_state import Lease
from django_durable.engine.transitions import leave
from django_durable.engine.transitions.leave import Pages
from django_durable.engine.transitions.step_claim import ClaimedStep
from django_durable.engine.transitions.step_end import hand_back
from django_durable.quiet import report
from django_durable.runtime.lease import LeaseKeeper
from django_durable.runtime.remote_step import run_remote_step
from django_durable.runtime.turn import run_turn


def run_claim(claim: Claimed, lease: Lease, stop: threading.Event | None = None) -> None:
    """Drive it as far as it goes. Returns normally whatever became of it."""
    if isinstance(claim, ClaimedStep):
        run_remote_step(claim, lease, stop)
    else:
        run_turn(claim, lease, stop)


def run_held(claim: Claimed, keeper: LeaseKeeper, stop: threading.Event | None = None) -> None:
    """Drive it while its lease is kept. What goes wrong in the engine is reported; the lease then lapses."""
    lease: Lease | None = None
    try:
        lease = keeper.hold(claim)
        run_claim(claim, lease, stop)
    except Exception as error:
        report(error, "the turn of execution %s failed in the engine", claim.id)
    finally:
        if lease is not None:
            keeper.drop(lease)


def release(claim: Claimed) -> bool:
    """Give it up, due now; for a body that is still running when its process ends."""
    if isinstance(claim, ClaimedStep):
        return hand_back(claim, begun=True)
    return leave.release(claim, Pages())
