"""Contract §2 and §3: undo steps run last first, once, whichever way an execution ends without its result."""

from __future__ import annotations

import pytest

from django_durable import ExecutionClosed
from django_durable.models import DeadLetter
from django_durable.testing import DurableKit
from tests.composition.trips import block, during, keys, log, trip, undone

pytest_plugins = ["django_durable.testing.plugin"]
pytestmark = pytest.mark.django_db

BOOKED = ["book a", "book b", "book c"]
UNBOOKED = ["unbook c", "unbook b", "unbook a"]
ALL = [("trips.cancel", "completed")] * 3


def test_an_uncaught_step_failure_undoes_before_failed(durable: DurableKit) -> None:
    execution = durable.run(trip, "fail")
    assert execution.status == "failed"
    assert log == [*BOOKED, "refuse d", *UNBOOKED]
    assert execution.error is not None and execution.error["type"] == "builtins.ValueError"
    assert execution.error["step"] == "trips.refuse"
    assert undone(execution) == ALL
    assert DeadLetter.objects.get(execution_id=execution.pk).status == "failed"


def test_an_error_of_the_body_undoes_before_failed(durable: DurableKit) -> None:
    execution = durable.run(trip, "raise")
    assert execution.status == "failed"
    assert log == [*BOOKED, *UNBOOKED]
    assert execution.error is not None and execution.error["type"] == "builtins.RuntimeError"


def test_a_result_undoes_nothing(durable: DurableKit) -> None:
    execution = durable.run(trip)
    assert execution.result() == "done"
    assert log == BOOKED


def test_a_block_undoes_before_its_error_goes_on(durable: DurableKit) -> None:
    execution = durable.run(block, "fail")
    assert execution.status == "failed"
    assert log == [*BOOKED, "refuse d", *UNBOOKED]
    assert undone(execution) == ALL
    assert [e["name"] for e in execution.history() if e["kind"] == "saga"] == ["undone"]


def test_undo_keys_belong_to_the_registration(durable: DurableKit) -> None:
    execution = durable.run(trip, "fail")
    assert keys["unbook a"] == {f"{execution.pk}:undo.0"}
    assert keys["unbook c"] == {f"{execution.pk}:undo.4"}


@pytest.mark.parametrize("flow", [trip, block], ids=["whole run", "block"])
@pytest.mark.parametrize("then", ["sleep", "wait"])
def test_cancel_of_one_that_waits(durable: DurableKit, flow: object, then: str) -> None:
    execution = flow.start(then)  # type: ignore[attr-defined]
    durable.run_until_idle(skip=None)
    assert execution.cancel() is True
    assert execution.status == "compensating"
    assert execution.cancel() is False
    with pytest.raises(ExecutionClosed):
        execution.signal("go")
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "cancelled"
    assert log == [*BOOKED, *UNBOOKED]
    assert not DeadLetter.objects.exists()
    assert execution.error is None


@pytest.mark.parametrize("at", ["a", "b", "c"])
@pytest.mark.parametrize("flow", [trip, block], ids=["whole run", "block"])
def test_cancel_during_a_step(durable: DurableKit, flow: object, at: str) -> None:
    execution = flow.start()  # type: ignore[attr-defined]
    during[f"book {at}"] = lambda: answers.append(execution.cancel())
    answers: list[bool] = []
    durable.run_until_idle()
    execution.refresh_from_db()
    assert (execution.status, answers) == ("cancelled", [True])
    booked = "abc"[: "abc".index(at) + 1]
    assert log == [*(f"book {one}" for one in booked), *(f"unbook {one}" for one in reversed(booked))]
    steps = [e for e in execution.history() if e["kind"] == "step"]
    assert len(steps) == len(booked) - 1, "the result of the step under way is refused"


@pytest.mark.parametrize("flow", [trip, block], ids=["whole run", "block"])
def test_a_deadline_undoes_before_timed_out(durable: DurableKit, flow: object) -> None:
    execution = flow.using(timeout=60).start("wait")  # type: ignore[attr-defined]
    durable.run_until_idle(skip="all")
    execution.refresh_from_db()
    assert execution.status == "timed_out"
    assert log == [*BOOKED, *UNBOOKED]
    assert execution.error is not None and execution.error["type"].endswith("ExecutionTimedOut")
    assert DeadLetter.objects.get(execution_id=execution.pk).status == "timed_out"


def test_a_deadline_during_a_step_undoes_that_step_too(durable: DurableKit) -> None:
    execution = trip.using(timeout=60).start()
    during["book b"] = lambda: durable.advance(61)
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "timed_out"
    assert log == ["book a", "book b", "unbook b", "unbook a"]
