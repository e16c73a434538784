"""A retry removes what followed the failure that ended the run; what waits had taken there is not lost with it."""

from __future__ import annotations

from typing import Any

from django_durable import Context, StepFailed, step, workflow
from django_durable.events import publish
from django_durable.models import EventTaken
from django_durable.testing import DurableKit

pytest_plugins = ["django_durable.testing.plugin"]


@step
def shaky() -> str:
    return "fine"


@workflow("composition.given_back")
def given_back(ctx: Context) -> list[Any]:
    """Handles a failure with what others send, and ends with that failure all the same."""
    before = ctx.wait_for_event("sold")
    try:
        done = ctx.step(shaky)
    except StepFailed:
        ctx.wait_for_signal("go")
        ctx.wait_for_event("sold")
        ctx.wait_for_update("add")
        raise
    return [before, done, ctx.wait_for_update("add").payload, ctx.wait_for_event("sold"), ctx.wait_for_signal("go")]


def test_messages_and_events_are_there_for_the_waits_of_the_other_path(durable: DurableKit) -> None:
    with durable.fail_step(shaky):
        execution = given_back.start()
        for number in range(2):
            publish("sold", number)
        execution.signal("go", "word")
        execution.send_update("add", "more")
        durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.status == "failed"
    execution.retry(actor="ann")
    durable.run_until_idle()
    execution.refresh_from_db()
    assert execution.output == [0, "fine", "more", 1, "word"]
    assert EventTaken.objects.count() == 2
