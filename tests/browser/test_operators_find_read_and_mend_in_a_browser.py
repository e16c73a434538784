"""What the people on call do, in a real browser against a live project."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from django_durable import Execution
from django_durable.models import OperatorAction, OperatorNote
from tests.services.project import Project

if TYPE_CHECKING:
    from playwright.sync_api import Page

LIST = "/admin/django_durable/execution/"
NOW = timedelta(0)
HOSTILE = {
    "script": "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">",
    "quotes": "\"'`&amp;</pre></details>",
    "nul": "a\x00b",
    "large": 10**60,
    "exact": Decimal("12.50"),
    "template": "{{ 7|add:7 }}{% now 'Y' %}",
}


def order(*, spoilt: bool = False, pause: timedelta = NOW) -> Execution[Any]:
    from testproject.shop.models import Order, OrderLine
    from testproject.shop.workflows import fulfil

    status = Order.Status.CANCELLED if spoilt else Order.Status.NEW
    row = Order.objects.create(status=status)
    OrderLine.objects.create(order=row, sku="article-1", quantity=2, unit_price=Decimal("12.50"))
    return fulfil.using(key=f"order-{row.pk}").start(row.pk, pause=pause)


def now(execution: Execution[Any]) -> Execution[Any]:
    return Execution.objects.locate(execution.pk)


def page_of(execution: Execution[Any]) -> str:
    return f"{LIST}{execution.pk}/change/"


def failed(project: Project) -> Execution[Any]:
    """One that fails after its payment; a retry mends it."""
    from testproject.shop.models import Order

    execution = order(spoilt=True)
    execution.signal("reviewed", {"by": "the day shift"})
    project.wait_for(lambda: now(execution).status == "failed")
    Order.objects.filter(status=Order.Status.CANCELLED).update(status=Order.Status.NEW)
    return execution


def waiting(project: Project) -> Execution[Any]:
    execution = order()
    project.wait_for(lambda: now(execution).status == "waiting" and "reviewed" in now(execution).awaiting)
    return execution


def test_a_failed_execution_is_found_read_retried_and_watched_to_its_end(
    project: Project, enter: Callable[..., Page], picture: Callable[[Page, str], None]
) -> None:
    execution = failed(project)
    page = enter("operator")
    picture(page, "list-light")
    page.goto(f"{LIST}?status__exact=failed")
    page.click("#result_list tbody th a, #result_list tbody td a")
    page.wait_for_url(f"**{page_of(execution)}**")
    assert page.locator("svg.durable-timeline rect.durable-is-failed").count() == 1
    assert page.locator("svg.durable-timeline text").first.is_visible()
    picture(page, "failed-light")

    page.click("text=Retry")
    page.fill("textarea[name=reason]", "the order is right now")
    picture(page, "confirmation-light")
    page.click("input[type=submit][value=Retry]")
    page.wait_for_url(f"**{page_of(execution)}")
    assert "is retried" in page.inner_text(".messagelist")
    # Nobody reloads: the page looks again by itself.
    page.wait_for_selector(".durable-facts .durable-status.durable-completed", timeout=30_000)
    note = OperatorNote.objects.get(execution_id=execution.pk)
    assert (note.verb, note.actor, note.reason) == ("retry", "operator", "the order is right now")


def test_a_run_that_goes_on_is_shown_live_in_the_dark_too(
    project: Project, enter: Callable[..., Page], picture: Callable[[Page, str], None]
) -> None:
    execution = waiting(project)
    page = enter("administrator", dark=True)
    picture(page, "list-dark")
    page.goto(page_of(execution))
    assert page.locator("line.durable-now").count() == 1
    picture(page, "waiting-dark")
    execution.signal("reviewed", None)
    page.wait_for_selector(".durable-facts .durable-status.durable-completed", timeout=30_000)
    assert page.locator("line.durable-now").count() == 0
    picture(page, "completed-dark")


def test_a_cancel_is_confirmed_with_a_reason(project: Project, enter: Callable[..., Page]) -> None:
    execution = waiting(project)
    page = enter("operator")
    page.goto(page_of(execution))
    page.click(".durable-verbs >> text=Cancel >> nth=0")
    assert now(execution).status == "waiting", "the first click changes nothing"
    page.fill("textarea[name=reason]", "ordered twice")
    page.click("input[type=submit].default")
    page.wait_for_url(f"**{page_of(execution)}")
    assert now(execution).status == "cancelled"
    assert OperatorNote.objects.get(execution_id=execution.pk).reason == "ordered twice"


def test_a_viewer_sees_and_changes_nothing(project: Project, enter: Callable[..., Page]) -> None:
    execution = failed(project)
    page = enter("viewer")
    page.goto(page_of(execution))
    assert page.locator(".durable-verbs").count() == 0
    assert "You may see its type and size only." in page.inner_text("#content")
    token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
    for verb in ("retry", "cancel", "pause", "resume"):
        url = f"{LIST}{execution.pk}/{verb}/"
        assert page.request.get(url).status == 403
        sent = page.request.post(url, form={"reason": "let me", "csrfmiddlewaretoken": token})
        assert sent.status in (403, 405), verb
        without = page.request.post(url, form={"reason": "let me"})
        assert without.status in (403, 405), verb
    ticked = {"action": "retry_selected", "_selected_action": str(execution.pk), "confirmed": "yes", "reason": "x"}
    assert page.request.post(LIST, form={**ticked, "csrfmiddlewaretoken": token}).status == 403
    assert now(execution).status == "failed"
    assert not OperatorAction.objects.exists()


def test_a_get_by_somebody_who_may_changes_nothing(project: Project, enter: Callable[..., Page]) -> None:
    execution = failed(project)
    page = enter("administrator")
    assert page.request.get(f"{LIST}{execution.pk}/retry/?reason=x").status == 200
    assert page.request.post(f"{LIST}{execution.pk}/retry/", form={"reason": "x"}).status == 403, "without a token"
    assert now(execution).status == "failed"


def test_a_hostile_payload_is_shown_exactly_and_does_nothing(
    project: Project, enter: Callable[..., Page], picture: Callable[[Page, str], None]
) -> None:
    execution = waiting(project)
    execution.signal("remarks", HOSTILE)
    dialogs: list[str] = []
    page = enter("administrator")
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(page_of(execution))
    block = page.locator("details", has_text="document.title").first
    block.locator("summary").click()
    shown = json.loads(block.locator("pre").inner_text())
    for name in ("script", "quotes", "nul", "large", "template"):
        assert shown[name] == HOSTILE[name], name
    assert "12.50" in str(shown["exact"])
    picture(page, "hostile-light")
    assert page.title() != "taken"
    assert dialogs == []


def test_everything_works_without_javascript(project: Project, enter: Callable[..., Page]) -> None:
    execution = failed(project)
    page = enter("operator", java_script_enabled=False)
    page.goto(page_of(execution))
    page.click("text=Retry")
    page.fill("textarea[name=reason]", "by hand")
    page.click("input[type=submit][value=Retry]")
    project.wait_for(lambda: now(execution).status == "completed")
    page.goto(page_of(execution))
    assert page.locator(".durable-facts .durable-completed").count() == 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_strict_content_security_policy_is_kept(dark: bool, project: Project, enter: Callable[..., Page]) -> None:
    execution = waiting(project)
    page = enter("administrator", dark=dark)
    refused: list[str] = []
    page.on("console", lambda line: refused.append(line.text) if "Content Security Policy" in line.text else None)

    def strict(route: Any) -> None:
        answer = route.fetch()
        headers = {**answer.headers, "content-security-policy": "default-src 'self'; img-src 'self' data:"}
        route.fulfill(response=answer, headers=headers)

    page.route("**/admin/**", strict)
    page.goto(page_of(execution))
    execution.signal("reviewed", None)
    page.wait_for_selector(".durable-facts .durable-status.durable-completed", timeout=30_000)
    assert refused == []
