"""The testing kit fires schedules by its clock: what a jump has passed over, or, from idle, each one's next time."""

from __future__ import annotations

from datetime import timedelta

from django_durable import Context, Execution, step, workflow
from django_durable.authoring.registry import forget
from django_durable.testing import DurableKit
from tests.driving import USING
from tests.flow.flows import outcomes, report


@workflow("flow.sleeps")
def sleeps(ctx: Context) -> None:
    ctx.sleep(timedelta(days=3))


def test_idle_moves_on_to_the_next_time_of_each_schedule_once(durable: DurableKit) -> None:
    report.schedule("nightly", cron="0 2 * * *", timezone="Europe/Berlin")
    report.schedule("weekly", cron="0 3 * * SUN", timezone="Europe/Berlin")
    assert durable.run_until_idle() >= 2
    assert outcomes("weekly") == [("started", "")]
    assert outcomes("nightly")[0] == ("started", "")
    assert {e.status for e in Execution.objects.using(USING).all()} == {"completed"}


def test_times_that_a_jump_passes_over_are_caught_up_as_declared(durable: DurableKit) -> None:
    report.schedule("nightly", cron="0 2 * * *", timezone="Europe/Berlin")
    durable.advance(1)
    execution = durable.run(sleeps)
    assert execution.status == "completed"
    assert outcomes("nightly") == [("skipped", "missed")] * 2 + [("started", "")]


def test_a_schedule_is_no_part_of_a_test_that_is_not_about_it(durable: DurableKit) -> None:
    report.schedule("nightly", cron="0 2 * * *", timezone="Europe/Berlin")
    durable.run(report)
    durable.run(sleeps)
    assert Execution.objects.using(USING).count() == 2


def test_advance_counts_from_where_it_began(durable: DurableKit) -> None:
    report.schedule("hourly", every=3600)
    durable.advance(timedelta(hours=1, seconds=1))
    assert durable.run_until_idle(skip=None) == 1
    assert outcomes("hourly") == [("started", "")]


def test_a_body_may_move_the_clock_too(durable: DurableKit) -> None:
    @step("flow.slow")
    def slow() -> None:
        durable.advance(10)

    @workflow("flow.moves")
    def moves(ctx: Context) -> None:
        ctx.step(slow)

    try:
        report.schedule("hourly", every=3600)
        assert durable.run(moves).status == "completed"
    finally:
        forget(moves)
