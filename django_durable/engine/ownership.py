"""What zero rows mean: the one read that decides after a fenced write was refused."""

from __future__ import annotations

from enum import Enum

from django.db import connections

from django_durable.engine.claimed import Claimed
from django_durable.engine.journal import CHECKPOINT, EXECUTION
from django_durable.models import Checkpoint, Execution
from django_durable.models.checkpoint import WHOLE
from django_durable.sql import build, convert, fetch, field_of, value

_READ = ("lease_token", "epoch", "status", "ending_as")


class Suspended(BaseException):
    """The turn is over: its execution waits, was handed back or paused. Committed before it is raised."""


class Abandoned(BaseException):
    """The turn is over and may write nothing more: another owner, a cancel, or nobody knows."""


class Refusal(Enum):
    """Why a fenced write touched no row."""

    LOST = "the token is gone"
    ENDING = "the run is to end: a cancel was accepted, or its time is over"
    MINE = "it had been committed before"
    FOREIGN = "another record is at this position"
    UNKNOWN = "the fence holds and there is no record"


def explain_refusal(claim: Claimed, position: int | None = None, *, item: int = WHOLE) -> Refusal:
    """Decide by one read what a refused write of this claim means. ``position``: the one to be written."""
    connection = connections[claim.using]
    row, writer = _read(claim, position, item)
    if row is None:
        return Refusal.LOST
    state = convert(connection, Execution, _READ, row)
    if state["lease_token"] != claim.token or state["epoch"] != claim.row["epoch"]:
        return Refusal.LOST
    if state["ending_as"] and not claim.undoing:
        return Refusal.ENDING
    if state["status"] not in ("running", "compensating"):
        return Refusal.LOST
    if writer is None:
        return Refusal.UNKNOWN
    mine = convert(connection, Checkpoint, ["lease_token"], [writer])["lease_token"] == claim.token
    return Refusal.MINE if mine else Refusal.FOREIGN


def pause_is_asked(claim: Claimed) -> bool:
    """Whether an operator asked for a pause: for a write that was committed although its answer was lost."""
    wanted = value(connections[claim.using], field_of(Execution, "id"), claim.id)
    statement = build(f"SELECT pause_requested_at IS NOT NULL FROM {EXECUTION} WHERE id = {{id}}", id=wanted)
    return any(bool(row[0]) for row in fetch(claim.using, statement))


def _read(claim: Claimed, position: int | None, item: int) -> tuple[tuple[object, ...] | None, object]:
    connection = connections[claim.using]
    rows = fetch(
        claim.using,
        build(
            "SELECT e.lease_token, e.epoch, e.status, e.ending_as, c.lease_token"
            f" FROM {EXECUTION} e LEFT JOIN {CHECKPOINT} c"
            f" ON c.execution_id = e.id AND c.position = {{position}} AND c.item = {item} WHERE e.id = {{id}}",
            position=value(connection, field_of(Checkpoint, "position"), -1 if position is None else position),
            id=value(connection, field_of(Execution, "id"), claim.id),
        ),
    )
    return (rows[0][:4], rows[0][4]) if rows else (None, None)
