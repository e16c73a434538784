"""With ``TENANT_RESOLVER`` a request belongs to a tenant: whatever is another one's is not there, by no way."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Execution
from django_durable.models import EventRow
from tests.driving import USING, drain
from tests.rest.flows import run
from tests.rest.requests import ENDPOINTS
from tests.rest.visitors import BASE, CODENAMES, EXECUTIONS, client_of, of, superuser, user_with

pytestmark = pytest.mark.django_db


def tenant_of(request: Any) -> str | None:
    """By the user's name, as a project would look it up."""
    return {"ann": "acme", "bob": "bolts"}.get(request.user.get_username())


@pytest.fixture(autouse=True)
def _resolver(settings: Any) -> None:
    settings.DURABLE = {"TENANT_RESOLVER": f"{__name__}.tenant_of"}


def boss(name: str) -> Any:
    return client_of(user_with(*CODENAMES, name=name))


def ids(response: Any) -> set[str]:
    assert response.status_code == 200, response.content
    return {row.get("execution_id") or row["id"] for row in response.json()["results"]}


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("executions/", "fail"),
        ("executions/?status=failed", "fail"),
        ("executions/?key=same", "fail"),
        ("executions/?tag=color=red", "fail"),
        ("executions/?page_size=1", "fail"),
        ("dead-letters/", "fail"),
        ("dead-letters/?open=true&workflow=rest.job", "fail"),
        ("approvals/", "ask"),
        ("approvals/?name=ok", "ask"),
    ],
)
def test_lists_hold_the_tenants_own(address: str, what: str) -> None:
    own = {
        tenant: str(run(what, key="same", tags={"color": "red"}, tenant=tenant or None).pk)
        for tenant in ("bolts", "acme", "")
    }
    assert ids(boss("ann").get(BASE + address)) == {own["acme"]}
    bob = boss("bob")
    assert ids(bob.get(BASE + address)) == {own["bolts"]}
    # No tenant: a superuser has all of them, anybody else what has none.
    assert ids(boss("cleo").get(BASE + address)) == {own[""]}
    if "page_size" not in address:
        assert ids(superuser().get(BASE + address)) == set(own.values())
    # A filter narrows what one may see; it opens nothing.
    joint = "&" if "?" in address else "?"
    assert ids(bob.get(f"{BASE}{address}{joint}tenant=acme")) == set()


ONE = [name for name, endpoint in ENDPOINTS.items() if endpoint.of_one_tenant]
ABOUT = [
    name
    for name in ONE
    if name not in ("list", "dead-letters", "approvals", "schedules", "start", "publish", "workflows", "schema")
]


@pytest.mark.parametrize("name", ABOUT)
def test_a_foreign_execution_is_not_found_and_not_changed(name: str) -> None:
    request = ENDPOINTS[name].prepare(tenant="bolts")
    execution = request.execution
    assert execution is not None
    before = Execution.objects.filter(pk=execution.pk).values().get()
    refused = request.send(boss("ann"))
    assert refused.status_code == 404
    unknown = refused.json()
    # The same words as for one that never was.
    other = request.url.replace(str(execution.pk), "0190f0f0-0000-7000-8000-000000000000")
    if name != "retry letter" and "schedule" not in name:
        never = getattr(boss("cleo"), request.method)(other, request.body).json()
        assert unknown["detail"].replace(str(execution.pk), "") == never["detail"].replace(other.split("/")[3], "")
        assert {**unknown, "detail": ""} == {**never, "detail": ""}
    assert "bolts" not in refused.content.decode()
    assert Execution.objects.filter(pk=execution.pk).values().get() == before
    assert request.send(superuser()).status_code == ENDPOINTS[name].status


@pytest.mark.parametrize("name", [name for name, endpoint in ENDPOINTS.items() if not endpoint.of_one_tenant])
def test_what_does_not_say_whose_it_is_is_for_operators_of_everything(name: str) -> None:
    request = ENDPOINTS[name].prepare()
    for who in ("ann", "cleo"):
        assert request.send(boss(who)).status_code == 403
    assert request.send(superuser()).status_code == ENDPOINTS[name].status


def test_a_start_belongs_to_the_requests_tenant_whatever_the_body_says() -> None:
    ann, bob = boss("ann"), boss("bob")
    body = {"workflow": "rest.job", "key": "same"}
    mine, his = ann.post(EXECUTIONS, body), bob.post(EXECUTIONS, body)
    assert (mine.status_code, his.status_code) == (201, 201)
    assert {one.tenant: str(one.pk) for one in Execution.objects.all()} == {
        "acme": mine.json()["id"],
        "bolts": his.json()["id"],
    }
    refused = ann.post(EXECUTIONS, {**body, "tenant": "bolts"})
    assert (refused.status_code, refused.json()["errors"]) == (400, {"tenant": ["There is no such member."]})
    assert ann.post(EXECUTIONS, {"workflow": "rest.job"}).status_code == 201
    assert set(Execution.objects.values_list("tenant", flat=True)) == {"acme", "bolts"}


@pytest.mark.django_db(transaction=True)
def test_an_event_is_for_the_requests_tenant() -> None:
    theirs = run("event", tenant="bolts")
    own = run("event", tenant="acme")
    ann, bob = boss("ann"), boss("bob")
    assert (
        ann.post(f"{BASE}events/", {"name": "paid", "payload": 1}, headers={"Idempotency-Key": "k"}).status_code
        == 201
    )
    # The same key of another tenant is another one.
    drain()
    assert Execution.objects.locate(own.pk).status == "completed"
    assert Execution.objects.locate(theirs.pk).status == "waiting"
    assert (
        bob.post(f"{BASE}events/", {"name": "paid", "payload": 2}, headers={"Idempotency-Key": "k"}).status_code
        == 201
    )
    assert EventRow.objects.using(USING).count() == 2


def test_a_cursor_of_another_tenant_leads_nowhere_else() -> None:
    run(tenant="acme")
    theirs = [str(run(tenant="bolts").pk) for _ in range(3)]
    page = boss("ann").get(f"{EXECUTIONS}?cursor={theirs[-1]}")
    assert not ids(page) & set(theirs)


def test_children_are_the_tenants_too() -> None:
    parent = run("child", tenant="acme")
    child = Execution.objects.get(parent_id=parent.pk)
    assert ids(boss("ann").get(of(parent, "children"))) == {str(child.pk)}
    assert boss("bob").get(of(child)).status_code == 404
