"""``Idempotency-Key``: the key of a start without one, the deduplication key of a message; other body, 422."""

from __future__ import annotations

from typing import Any

import pytest

from django_durable import Execution
from django_durable.models import EventRow, Message
from tests.driving import USING, drain
from tests.rest.flows import run
from tests.rest.visitors import BASE, EXECUTIONS, of, superuser

pytestmark = pytest.mark.django_db

KEY = {"Idempotency-Key": "request-1"}


def reused(response: Any) -> bool:
    return (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")


def test_a_start_without_key_has_the_headers() -> None:
    root = superuser()
    body = {"workflow": "rest.job", "input": {"value": 1}}
    first, again = root.post(EXECUTIONS, body, headers=KEY), root.post(EXECUTIONS, body, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert first.json()["key"] == "request-1"
    assert first["Location"] == again["Location"]
    drain()
    assert root.post(EXECUTIONS, body, headers=KEY).json()["status"] == "completed"
    assert Execution.objects.count() == 1


@pytest.mark.parametrize(
    "other",
    [
        {"input": {"value": 2}},
        {"input": {"value": 1}, "priority": 1},
        {"input": {"value": 1}, "correlation_id": "c"},
        {"input": {"value": 1}, "run_after": "2090-01-01T00:00:00Z"},
    ],
)
def test_a_start_with_another_body_is_refused(other: dict[str, Any]) -> None:
    root = superuser()
    root.post(EXECUTIONS, {"workflow": "rest.job", "input": {"value": 1}}, headers=KEY)
    assert reused(root.post(EXECUTIONS, {"workflow": "rest.job", **other}, headers=KEY))
    assert Execution.objects.count() == 1


def test_the_bodys_key_goes_first_and_its_conflict_is_409() -> None:
    root = superuser()
    body = {"workflow": "rest.job", "key": "own"}
    assert root.post(EXECUTIONS, body, headers=KEY).json()["key"] == "own"
    other = root.post(EXECUTIONS, {**body, "input": {"value": 9}}, headers=KEY)
    assert (other.status_code, other.json()["code"]) == (409, "execution_conflict")


@pytest.mark.parametrize(("what", "verb", "name"), [("wait", "signal", "go"), ("update", "update", "add")])
def test_a_message_is_stored_once(what: str, verb: str, name: str) -> None:
    execution, root = run(what), superuser()
    body = {"name": name, "payload": {"amount": "1"} if verb == "signal" else 1}
    first = root.post(of(execution, verb), body, headers=KEY)
    again = root.post(of(execution, verb), body, headers=KEY)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert reused(root.post(of(execution, verb), {**body, "payload": 2}, headers=KEY))
    assert Message.objects.count() == 1
    assert root.post(of(execution, verb), body, headers={"Idempotency-Key": "2"}).json() != first.json()


def test_a_signal_may_be_repeated_after_the_end() -> None:
    execution, root = run("wait"), superuser()
    first = root.post(of(execution, "signal"), {"name": "go", "payload": 1}, headers=KEY)
    drain()
    again = root.post(of(execution, "signal"), {"name": "go", "payload": 1}, headers=KEY)
    assert (again.status_code, again.json()) == (200, first.json())


def test_the_bodys_deduplication_key_is_that_of_the_code() -> None:
    execution, root = run("wait"), superuser()
    first = root.post(of(execution, "signal"), {"name": "go", "payload": 1, "dedup_key": "d"}, headers=KEY)
    # As Execution.signal(): the first one's id, whatever the other carries.
    again = root.post(of(execution, "signal"), {"name": "go", "payload": 2, "dedup_key": "d"}, headers=KEY)
    assert (again.status_code, again.json()) == (200, first.json())


def test_an_event_is_published_once() -> None:
    root = superuser()
    body = {"name": "paid", "payload": {"order": 1}}
    first = root.post(f"{BASE}events/", body, headers=KEY)
    again = root.post(f"{BASE}events/", body, headers=KEY)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert reused(root.post(f"{BASE}events/", {**body, "payload": 2}, headers=KEY))
    assert EventRow.objects.using(USING).count() == 1


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_that_cannot_be_stored_is_refused(key: str) -> None:
    root = superuser()
    answer = root.post(EXECUTIONS, {"workflow": "rest.job"}, headers={"Idempotency-Key": key})
    assert (answer.status_code, set(answer.json()["errors"])) == (400, {"Idempotency-Key"})
    assert not Execution.objects.exists()
