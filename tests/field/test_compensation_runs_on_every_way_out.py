"""Field report B64: a cancelled run is not undone, or only where its body happened to be when the cancel came."""

from __future__ import annotations

import pytest

from django_durable import Execution
from django_durable.models import DispatchHint
from tests.field.rig.yard import Yard

UNDONE = ["x-undo-c", "x-undo-b", "x-undo-a"]


def ended(yard: Yard, execution: Execution[str]) -> list[str]:
    """Which bodies began, once it is cancelled; nothing is left behind."""
    done = yard.wait_for_status(execution, "cancelled", "completed", "failed", "dead")
    assert done.status == "cancelled"
    assert done.cancel() is False
    assert not DispatchHint.objects.exists()
    return yard.begun()


def test_a_cancel_during_a_step_undoes_that_step_too(yard: Yard) -> None:
    (yard.folder / "hold-x-b").touch()
    yard.worker()
    execution = yard.start("undoable", "x", "returns")
    yard.wait_for_effect("begin x-b")
    assert execution.cancel(actor="ann") is True
    assert execution.cancel(actor="ben") is False
    assert yard.reload(execution).status == "running", "undo steps begin when the turn has stopped"
    yard.open("x-b")
    assert ended(yard, execution) == ["x-a", "x-b", "x-undo-b", "x-undo-a"]


def test_a_cancel_during_a_sleep_undoes(yard: Yard) -> None:
    yard.worker()
    execution = yard.start("undoable", "x", "sleeps")
    yard.wait_for_status(execution, "waiting")
    assert execution.cancel(actor="ann") is True
    assert ended(yard, execution) == ["x-a", "x-b", "x-c", *UNDONE]


@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_a_cancel_just_before_the_end_undoes_and_is_not_lost(yard: Yard, ends: str) -> None:
    yard.worker()
    execution = yard.start("undoable", "x", ends)
    yard.wait_for_effect("return x")
    assert execution.cancel(actor="ann") is True
    yard.open("x-return")
    assert ended(yard, execution) == ["x-a", "x-b", "x-c", *UNDONE]


def test_a_kill_between_two_undo_steps_repeats_none_that_is_done(yard: Yard) -> None:
    (yard.folder / "hold-x-undo-a").touch()
    first = yard.worker()
    execution = yard.start("undoable", "x", "sleeps")
    yard.wait_for_status(execution, "waiting")
    assert execution.cancel(actor="ann") is True
    yard.wait_for_effect("begin x-undo-a")
    first.kill()
    assert execution.cancel(actor="ann") is False, "a second cancel starts no second undo"
    (yard.folder / "hold-x-undo-a").unlink()
    yard.worker()
    begun = ended(yard, execution)
    assert begun == ["x-a", "x-b", "x-c", *UNDONE, "x-undo-a"]
    [crash] = [
        entry for entry in yard.reload(execution).history() if entry["kind"] == "undo" and not entry["position"]
    ]
    assert (crash["status"], crash["attempts"]) == ("completed", 1)


def test_a_kill_after_a_cancel_leaves_the_undo_to_whoever_takes_over(yard: Yard) -> None:
    (yard.folder / "hold-x-b").touch()
    first = yard.worker()
    execution = yard.start("undoable", "x", "returns")
    yard.wait_for_effect("begin x-b")
    assert execution.cancel(actor="ann") is True
    first.kill()
    yard.worker()
    assert ended(yard, execution) == ["x-a", "x-b", "x-undo-b", "x-undo-a"]
