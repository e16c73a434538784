"""Operators of the whole installation see every plane's rows in one list; one that is away is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_user_model
from django.test import Client

from django_durable import Context, Execution, workflow
from django_durable.planes.breaker import _open
from tests.admin.html import parse
from tests.admin.visitors import DEAD_LETTERS, EXECUTIONS, page_of, sign_in
from tests.driving import drain
from tests.planes.conftest import NORTH, SOUTH
from tests.planes.conftest import planes as planes
from tests.planes.conftest import three_databases as three_databases
from tests.planes.faults import down

pytestmark = pytest.mark.usefixtures("planes")


@workflow("admin_planes.job")
def job(ctx: Context, fails: bool) -> int:
    if fails:
        raise ValueError("no")
    ctx.wait_for_signal("go")
    return 1


@pytest.fixture
def superuser() -> Iterator[Client]:
    get_user_model().objects.all().delete()
    yield sign_in("superuser")
    get_user_model().objects.all().delete()


def started(fails: bool = False) -> dict[str, Execution[int]]:
    found = {tenant: job.using(tenant=tenant).start(fails) for tenant in ("ann", "cid", "bob")}
    drain()
    return found


def listed(client: Client, url: str = EXECUTIONS) -> list[str]:
    links = [link.partition("?")[0] for link in parse(client.get(url)).links()]
    return [link for link in dict.fromkeys(links) if link.startswith(EXECUTIONS) and link.endswith("/change/")]


def test_a_list_is_of_all_planes_in_one_order(superuser: Client) -> None:
    found = started()
    newest = sorted(found.values(), key=lambda one: one.pk, reverse=True)
    assert listed(superuser) == [page_of(one) for one in newest]
    cells = parse(superuser.get(EXECUTIONS)).cells
    assert {"north", "south"} <= set(cells)


def test_pages_are_turned_over_all_planes(superuser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_durable.admin.execution.ExecutionAdmin.list_per_page", 2)
    everything = sorted([*started().values(), *started().values()], key=lambda one: one.pk, reverse=True)
    seen: list[str] = []
    url: Any = EXECUTIONS
    while url:
        page = parse(superuser.get(url))
        seen += listed(superuser, url)
        following = [link for link in page.links() if "after=" in link]
        url = f"{EXECUTIONS}{following[0]}" if following else None
    assert seen == [page_of(one) for one in everything]


def test_a_plane_that_is_away_is_named_and_the_others_are_shown(superuser: Client) -> None:
    found = started()
    with down(NORTH):
        page = parse(superuser.get(EXECUTIONS))
        assert any("orth gives no answer" in message for message in page.messages())
        assert listed(superuser) == [page_of(found["cid"])]
    _open.clear()


def test_dead_letters_are_of_all_planes(superuser: Client) -> None:
    found = started(fails=True)
    assert set(listed(superuser, DEAD_LETTERS)) == {page_of(one) for one in found.values()}


def test_a_verb_reaches_what_is_ticked_on_any_plane(superuser: Client) -> None:
    found = started()
    ticked = [str(found[tenant].pk) for tenant in ("ann", "cid")]
    data = {"action": "cancel_selected", ACTION_CHECKBOX_NAME: ticked, "confirmed": "yes", "reason": "both"}
    page = parse(superuser.post(EXECUTIONS, data, follow=True))
    assert len(page.messages()) == 2
    statuses = {one.tenant: one.status for one in everywhere()}
    assert statuses == {"ann": "cancelled", "cid": "cancelled", "bob": "waiting"}


def everywhere() -> list[Execution[Any]]:
    return [one for plane in (NORTH, SOUTH) for one in Execution._base_manager.using(plane)]
