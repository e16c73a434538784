"""Field report B08: one row of a claimed batch cannot be started; the others run in the same pass."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import InterfaceError, connection
from django.db.models import QuerySet

from django_durable import Context, Execution, step, workflow
from django_durable.dispatch.definitions import definition_hash
from django_durable.engine.transitions import recover
from django_durable.errors import ExecutionNotFound, PlaneUnavailable
from django_durable.models import DeadLetter, DispatchHint
from django_durable.runtime import sweeps, unknown_work
from django_durable.runtime.tick import INTERVALS, tick
from django_durable.runtime.turn import run_turn
from tests.calling import durable
from tests.driving import USING, claim, lapse_leases, lease_of
from tests.field.rig.yard import Yard

BATCH = 10
THIRD, SIXTH = 2, 5
GONE = "field.no_longer_here"


@step
def double(number: int) -> int:
    return 2 * number


@workflow
def doubled(ctx: Context, number: int) -> int:
    return ctx.step(double, number)


def corrupt(execution: Execution[Any], **columns: Any) -> None:
    """Write past the engine."""
    QuerySet(Execution).filter(pk=execution.pk).update(**columns)


def forget_workflow(execution: Execution[Any], *, hint_too: bool) -> None:
    """Give a queued execution the name of a workflow that nobody has."""
    corrupt(execution, workflow=GONE)
    if hint_too:
        hints = DispatchHint.objects.filter(execution_id=execution.pk)
        hints.update(definition=definition_hash(GONE, execution.version))


def statuses(executions: list[Execution[int]]) -> list[str]:
    kept = dict(Execution.objects.values_list("pk", "status"))
    return [kept[execution.pk] for execution in executions]


BAD_INPUTS = {
    "cut off": '{"number": 1',
    "empty": "",
    "a list": "[1]",
    "null": "null",
    "another parameter": '{"amount": 1}',
    "an unknown type": '{"number": {"$type:nobody": 1}}',
    "an unknown codec": "!nobody!AAAA",
    "deep": '{"number": ' + "[" * 5000 + "]" * 5000 + "}",
}


@pytest.mark.django_db
@pytest.mark.parametrize("bad", BAD_INPUTS.values(), ids=BAD_INPUTS)
def test_the_rest_of_the_batch_runs_in_the_same_pass(bad: str) -> None:
    executions = [doubled.start(number) for number in range(BATCH)]
    corrupt(executions[THIRD], encoded_input=bad)
    forget_workflow(executions[SIXTH], hint_too=False)
    claims = claim(BATCH)
    assert len(claims) == BATCH
    for claimed in claims:
        run_turn(claimed, lease_of(claimed))

    expected = ["completed"] * BATCH
    expected[THIRD], expected[SIXTH] = "failed", "blocked"
    assert statuses(executions) == expected
    letter = DeadLetter.objects.get()
    assert letter.execution_id == executions[THIRD].pk
    error = Execution.objects.defer("encoded_input").get(pk=executions[THIRD].pk).error
    assert error is not None
    assert error["type"] in ("django_durable.errors.UndecodableValue", "builtins.TypeError")
    assert any(word in error["message"] for word in ("the stored", "parameter", "is registered"))
    assert Execution.objects.locate(executions[SIXTH].pk).recoveries == 0


@pytest.mark.django_db
def test_a_row_that_breaks_a_sweep_keeps_it_from_no_other() -> None:
    executions = [doubled.start(number) for number in range(BATCH)]
    for number in (THIRD, SIXTH):
        forget_workflow(executions[number], hint_too=True)
    corrupt(executions[THIRD], version="not a version")
    assert unknown_work.block_unknown(USING) == 2
    DispatchHint.objects.all().delete()
    corrupt(executions[0], queue="q" * 255)
    assert sweeps.rebuild_everything(USING) == BATCH


@pytest.mark.django_db
def test_a_letter_that_cannot_be_written_keeps_back_no_other(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions = [doubled.start(number) for number in range(3)]
    QuerySet(Execution).filter(pk__in=[e.pk for e in executions]).update(status="failed")
    original = sweeps.dead_letter

    def fails_for_one(plane: str, row: Any, **more: Any) -> Any:
        if row["id"] == executions[1].pk:
            raise ArithmeticError("of this row alone")
        return original(plane, row, **more)

    monkeypatch.setattr(sweeps, "dead_letter", fails_for_one)
    assert sweeps.write_missing_letters(USING) == 2
    assert str(executions[1].pk) in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize("error", [ValueError("of this sweep alone"), ExecutionNotFound(), PlaneUnavailable()])
def test_a_sweep_that_fails_keeps_back_no_other(
    error: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_plane: str) -> int:
        raise error

    first, *others = INTERVALS
    monkeypatch.setitem(INTERVALS, first, (INTERVALS[first][0], fails))
    assert set(tick()) == set(others)
    assert f"sweep {first!r}" in caplog.text


@pytest.mark.django_db
def test_an_outage_of_the_spine_ends_the_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_plane: str) -> int:
        raise InterfaceError("the connection is closed")

    first = next(iter(INTERVALS))
    monkeypatch.setitem(INTERVALS, first, (INTERVALS[first][0], fails))
    with pytest.raises(InterfaceError):
        tick()


@pytest.mark.django_db
def test_a_take_over_that_fails_is_one_rows_trouble(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    executions = [doubled.start(number) for number in range(BATCH)]
    assert len(claim(BATCH)) == BATCH
    lapse_leases()
    original = recover.note_takeover

    def fails_for_one(row: Any, *args: Any) -> str:
        if row["id"] == executions[THIRD].pk:
            raise ArithmeticError("of this row alone")
        return original(row, *args)

    monkeypatch.setattr(recover, "note_takeover", fails_for_one)
    taken_over = claim(BATCH)
    assert {claimed.id for claimed in taken_over} == {e.pk for e in executions} - {executions[THIRD].pk}
    assert "could not be claimed" in caplog.text
    assert "of this row alone" not in [record.message for record in caplog.records if record.levelname != "DEBUG"]


@pytest.mark.django_db
def test_evidence_that_is_unreadable_never_stands_in_the_way_of_a_take_over() -> None:
    execution = doubled.start(1)
    claim()
    lapse_leases()
    corrupt(execution, takeovers="no list")
    [claimed] = claim()
    assert claimed.id == execution.pk
    assert "lease expired" in Execution.objects.locate(execution.pk).takeovers


def test_a_worker_goes_on_without_waiting_for_a_lease(yard: Yard) -> None:
    yard.durable["LEASE_SECONDS"] = 60
    executions = [yard.start("three", str(number)) for number in range(BATCH)]
    corrupt(executions[THIRD], encoded_input='{"name": ')
    forget_workflow(executions[SIXTH], hint_too=True)
    worker = yard.worker("--concurrency", str(BATCH))
    expected = ["completed"] * BATCH
    expected[THIRD], expected[SIXTH] = "failed", "blocked"
    yard.project.wait_for(lambda: statuses(executions) == expected, within=30)
    after = yard.start("three", "after")
    yard.wait_for_status(after, "completed")
    assert worker.is_running


def expected_with(third: str) -> list[str]:
    return [third if number == THIRD else "completed" for number in range(BATCH)]


if connection.vendor == "sqlite":
    # PostgreSQL stores no bytes that are no text and no time that is none; in SQLite's columns there may be anything.

    def store(column: str, sql: str, execution: Execution[Any]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE django_durable_execution SET {column} = {sql} WHERE id = %s", [execution.pk.hex])

    @pytest.mark.django_db
    @pytest.mark.parametrize(
        "sql", ["CAST(X'7B22FF' AS TEXT)", "CAST(X'7B226E756D626572223A22FF227D' AS TEXT)", "X'00'"]
    )
    def test_bytes_that_are_no_text_strand_no_other(sql: str) -> None:
        executions = [doubled.start(number) for number in range(BATCH)]
        store("encoded_input", sql, executions[THIRD])
        for claimed in claim(BATCH):
            run_turn(claimed, lease_of(claimed))
        assert statuses(executions) == expected_with("failed")
        assert DeadLetter.objects.get().execution_id == executions[THIRD].pk
        assert durable("list", json=True).code == 0

    @pytest.mark.django_db
    def test_a_time_that_is_none_strands_no_other() -> None:
        executions = [doubled.start(number) for number in range(BATCH)]
        store("run_after", "'2000-99-99 00:00:00'", executions[THIRD])
        for claimed in claim(BATCH):
            run_turn(claimed, lease_of(claimed))
        assert statuses(executions) == expected_with("running")
        lapse_leases()
        assert claim(BATCH) == []
