"""A drawing of the history: bars for what took time, marks for failed attempts, a line for now."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from django_durable import Execution
from django_durable.admin.timeline import Span, draw
from tests.admin.flows import completed, failed, waiting
from tests.admin.html import Page, parse
from tests.admin.many import make_checkpoints, make_executions
from tests.admin.visitors import page_of

LIVE = "data-durable-live"


def span(began: datetime | None, seconds: float | None, **more: Any) -> Span:
    ended = None if seconds is None or began is None else began + timedelta(seconds=seconds)
    values: dict[str, Any] = {
        "place": "0",
        "kind": "step",
        "name": "a",
        "status": "completed" if ended else "pending",
        "due": None,
        "failures": (),
        "is_undo": False,
    }
    return Span(began=began, ended=ended, **{**values, **more})


def bars(page: Page) -> list[dict[str, str]]:
    return [box for box in page.all("rect") if "durable-bar" in box.get("class", "")]


def test_bars_lie_where_their_times_are_and_none_is_too_narrow_to_see() -> None:
    began = timezone.now()
    run: Execution[Any] = Execution(status="completed", created_at=began, finished_at=began + timedelta(seconds=100))
    drawn = draw(run, [span(began, 50), span(began + timedelta(seconds=50), 50), span(began, 0.001)])
    assert drawn is not None
    first, second, short = drawn.bars
    assert (first.x, first.width) == ("220.0", "380.0")
    assert (second.x, second.width) == ("600.0", "380.0")
    assert short.width == "2.0"
    assert drawn.now_x == "", "it has ended"


def test_a_wait_of_days_does_not_make_a_dot_of_what_has_been() -> None:
    now = timezone.now()
    run: Execution[Any] = Execution(status="waiting", created_at=now)
    drawn = draw(run, [span(now - timedelta(seconds=90), None, kind="sleep", due=now + timedelta(days=90))])
    assert drawn is not None
    (bar,) = drawn.bars
    assert float(bar.width) > 400
    assert float(bar.ahead_width) > 100
    assert float(bar.x) + float(bar.width) == pytest.approx(float(drawn.now_x), abs=1)


def test_what_has_no_time_is_not_drawn() -> None:
    assert draw(Execution(status="pending", created_at=timezone.now()), [span(None, None)]) is None


@pytest.mark.parametrize(
    "more, look",
    [
        ({}, "step"),
        ({"kind": "sleep"}, "wait"),
        ({"kind": "signal"}, "wait"),
        ({"kind": "approval"}, "wait"),
        ({"kind": "child"}, "child"),
        ({"is_undo": True}, "undo"),
        ({"is_undo": True, "status": "failed"}, "failed"),
        ({"kind": "child", "status": "failed"}, "failed"),
    ],
)
def test_each_kind_has_a_look_of_its_own(more: dict[str, Any], look: str) -> None:
    assert span(timezone.now(), 1, **more).look == look


@pytest.mark.django_db
def test_the_page_draws_steps_waits_failures_and_now(superuser: Client) -> None:
    page = parse(superuser.get(page_of(waiting("a"))))
    assert [box["class"].rpartition(" ")[2] for box in bars(page)] == ["durable-is-step", "durable-is-wait"]
    assert [line["class"] for line in page.all("line")] == ["durable-now"]

    page = parse(superuser.get(page_of(failed("b"))))
    assert [box["class"].rpartition(" ")[2] for box in bars(page)] == ["durable-is-step", "durable-is-failed"]
    assert len([box for box in page.all("rect") if box["class"] == "durable-attempt"]) == 1
    assert not page.all("line")


@pytest.mark.django_db
def test_a_page_of_two_hundred_positions_is_one_drawing(superuser: Client) -> None:
    (id,) = make_executions(1)
    make_checkpoints(id, 5_000)
    page = parse(superuser.get(page_of(Execution(id=id))))
    assert len(bars(page)) == 200


@pytest.mark.django_db
def test_what_goes_on_is_kept_up_to_date_and_what_has_ended_is_left_alone(superuser: Client) -> None:
    live, ended = (parse(superuser.get(page_of(one))) for one in (waiting("a"), completed("b")))
    assert [box for _tag, box in live.elements if LIVE in box]
    assert not [box for _tag, box in ended.elements if LIVE in box]
    (script,) = [script for script in live.all("script") if "live.js" in script.get("src", "")]
    assert set(script) == {"src", "defer"}
    assert not [script for script in ended.all("script") if "live.js" in script.get("src", "")]
