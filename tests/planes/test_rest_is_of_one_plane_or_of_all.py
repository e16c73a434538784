"""REST over a spine and two planes: a tenant's own plane answers for it, an operator gets what can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import connections
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from django_durable import Context, Execution, workflow
from django_durable.models import DeadLetter
from tests.driving import drain
from tests.planes.conftest import NORTH, SOUTH
from tests.planes.faults import down

pytestmark = pytest.mark.usefixtures("planes")
EXECUTIONS = "/durable/executions/"


@workflow("planes.rest", rest=True)
def job(ctx: Context, then: str = "") -> Any:
    if then == "fail":
        raise ValueError("broken")
    if then == "ask":
        return ctx.wait_for_approval("ok").actor
    return ctx.wait_for_signal("go")


class Somebody(AnonymousUser):
    """Holds every permission and is in no database: users are not the point here."""

    is_authenticated = True  # type: ignore[assignment]

    def __init__(self, username: str) -> None:
        self.username = username
        self.is_superuser = username == "root"

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        return True


def tenant_of(request: Any) -> str | None:
    """The user's name is the tenant's."""
    return None if request.user.username == "root" else str(request.user.username)


@pytest.fixture(autouse=True)
def _resolver(planes: None) -> Iterator[None]:
    with override_settings(DURABLE={**settings.DURABLE, "TENANT_RESOLVER": f"{__name__}.tenant_of"}):
        yield


def client(name: str = "root") -> APIClient:
    made = APIClient()
    made.default_format = "json"
    made.force_authenticate(Somebody(name))
    return made


def start(tenant: str, then: str = "") -> Execution[Any]:
    return job.using(tenant=tenant).start(then)


def follow(address: str, who: APIClient) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    following: str | None = address
    while following:
        page = who.get(following).json()
        assert page["unavailable"] == []
        rows += page["results"]
        following = page["next"]
    return rows


def test_an_operator_pages_over_all_planes_and_is_told_which() -> None:
    made = [start(tenant) for tenant in ("ann", "cid", "bob", "cid", "ann")]
    rows = follow(f"{EXECUTIONS}?page_size=2", client())
    assert [row["id"] for row in rows] == [str(one.pk) for one in sorted(made, key=lambda one: one.pk, reverse=True)]
    assert {(row["tenant"], row["plane"]) for row in rows} == {("ann", "north"), ("bob", "north"), ("cid", "south")}


@pytest.mark.parametrize(("address", "then"), [("dead-letters/", "fail"), ("approvals/", "ask")])
def test_rows_with_numbers_of_their_own_are_paged_over_all_planes(address: str, then: str) -> None:
    made = {str(start(tenant, then).pk) for tenant in ("ann", "cid", "bob", "cid", "ann")}
    drain()
    rows = follow(f"/durable/{address}?page_size=2", client())
    assert sorted(row["execution_id"] for row in rows) == sorted(made)
    (own,) = {row["execution_id"] for row in follow(f"/durable/{address}", client("bob"))}
    assert Execution.objects.locate(own).tenant == "bob"
    assert "plane" not in follow(f"/durable/{address}", client("bob"))[0]


def test_a_tenant_is_answered_by_its_own_plane_alone() -> None:
    mine, theirs = start("ann"), start("cid")
    ann = client("ann")
    with CaptureQueriesContext(connections[SOUTH]) as seen:
        look(ann, mine, theirs)
    assert not seen.captured_queries


def look(ann: APIClient, mine: Execution[Any], theirs: Execution[Any]) -> None:
    assert ann.get(f"{EXECUTIONS}{mine.pk}/").status_code == 200
    assert [row["id"] for row in ann.get(EXECUTIONS).json()["results"]] == [str(mine.pk)]
    assert ann.get(f"{EXECUTIONS}{theirs.pk}/").status_code == 404


def test_a_dead_plane_is_told_to_operators_and_is_503_for_its_own_tenants() -> None:
    north, south = start("ann"), start("cid")
    with down(NORTH):
        page = client().get(EXECUTIONS).json()
        assert (page["unavailable"], [row["id"] for row in page["results"]]) == (["north"], [str(south.pk)])
        assert client().get("/durable/dead-letters/").json()["unavailable"] == ["north"]
        assert client().get("/durable/stats/").json()["unavailable"] == ["north"]
        planes = client().get("/durable/planes/").json()
        assert (planes["unavailable"], [row["reachable"] for row in planes["results"]]) == (["north"], [False, True])
        for answer in (
            client("ann").get(EXECUTIONS),
            client("ann").get(f"{EXECUTIONS}{north.pk}/"),
            client("ann").post(f"{EXECUTIONS}{north.pk}/cancel/", {}),
            client("ann").post(EXECUTIONS, {"workflow": "planes.rest"}),
            client("ann").post("/durable/events/", {"name": "x"}),
            client().get(f"{EXECUTIONS}{north.pk}/"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "plane_unavailable")
            assert "north" not in answer.json()["detail"]
        # Another tenant notices nothing, also of what is not its own.
        cid = client("cid")
        assert cid.get(EXECUTIONS).json()["unavailable"] == []
        assert cid.get(f"{EXECUTIONS}{south.pk}/").status_code == 200
        assert cid.get(f"{EXECUTIONS}{north.pk}/").status_code == 404
        assert cid.post(EXECUTIONS, {"workflow": "planes.rest"}).status_code == 201
    assert Execution.objects.using(NORTH).get().status == "pending"


def test_a_start_lands_on_the_tenants_plane_and_without_tenant_nowhere() -> None:
    answer = client("cid").post(EXECUTIONS, {"workflow": "planes.rest", "key": "k"})
    assert answer.status_code == 201
    assert str(Execution.objects.using(SOUTH).get().pk) == answer.json()["id"]
    refused = client().post(EXECUTIONS, {"workflow": "planes.rest"})
    assert (refused.status_code, refused.json()["code"]) == (400, "tenant_required")
    nowhere = client("dan").post(EXECUTIONS, {"workflow": "planes.rest"})
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "unknown_tenant")
    assert client("dan").get(EXECUTIONS).status_code == 404


def test_a_letter_whose_number_two_planes_have_needs_its_plane() -> None:
    for tenant in ("ann", "cid"):
        start(tenant, "fail")
    drain()
    for alias in (NORTH, SOUTH):
        DeadLetter.objects.using(alias).update(id=77)
    address = "/durable/dead-letters/77/retry/"
    ambiguous = client().post(address, {})
    assert (ambiguous.status_code, set(ambiguous.json()["errors"])) == (400, {"plane"})
    assert client("ann").post(address, {}).json()["id"] == str(Execution.objects.using(NORTH).get().pk)
    assert client().post(f"{address}?plane=south", {}).json()["id"] == str(Execution.objects.using(SOUTH).get().pk)
    assert client().post(f"{address}?plane=west", {}).status_code == 404


def test_verbs_reach_the_plane_and_are_recorded_on_both() -> None:
    from django_durable.models import OperatorAction, OperatorNote
    from tests.planes.conftest import SPINE

    execution = start("cid")
    assert client("cid").post(f"{EXECUTIONS}{execution.pk}/cancel/", {"reason": "why"}).status_code == 200
    note = OperatorNote.objects.using(SOUTH).get()
    assert (note.verb, note.actor, note.reason) == ("cancel", "cid", "why")
    assert OperatorAction.objects.using(SPINE).get().pk == note.pk
