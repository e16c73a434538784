"""Each verb, by REST: what it answers, what it changes, what it records."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connections

from django_durable import Execution
from django_durable.models import DeadLetter, DispatchHint, Message, OperatorAction, OperatorNote
from django_durable.operators.result import wait_for_result
from django_durable.operators.schedules.verbs import add
from django_durable.rest import executions
from tests.driving import USING, drain, make_due
from tests.rest import flows
from tests.rest.flows import order, run
from tests.rest.requests import parked_hint
from tests.rest.visitors import BASE, EXECUTIONS, client_of, of, superuser, user_with

pytestmark = pytest.mark.django_db


def noted(execution: Execution[Any]) -> list[tuple[str, str, str]]:
    rows = OperatorNote.objects.filter(execution_id=execution.pk).order_by("at", "id")
    actions = OperatorAction.objects.using(USING).filter(execution_id=execution.pk).order_by("at", "id")
    assert [(row.pk, row.verb, row.actor) for row in rows] == [(row.pk, row.verb, row.actor) for row in actions]
    return [(row.verb, row.actor, row.reason) for row in rows]


def refused(response: Any, status: int, code: str, **more: Any) -> None:
    problem = response.json()
    assert response["Content-Type"] == "application/problem+json"
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code), problem
    assert {"type", "title", "detail"} <= set(problem)
    assert {name: problem.get(name) for name in more} == more


def test_retry_mends_once_and_the_second_operator_is_told_who_was_first() -> None:
    execution, root = run("fail"), superuser()
    flows.state["broken"] = False
    answer = root.post(of(execution, "retry"), {"reason": "card is good"})
    assert (answer.status_code, answer.json()) == (200, {"id": str(execution.pk), "status": "pending"})
    assert noted(execution) == [("retry", "root", "card is good")]
    refused(root.post(of(execution, "retry"), {}), 409, "invalid_transition", actor="root")
    drain()
    assert Execution.objects.locate(execution.pk).status == "completed"


def test_a_dead_letter_is_retried_once_for_each_generation() -> None:
    execution, root = run("fail"), superuser()
    first = root.get(f"{BASE}dead-letters/?open=true").json()["results"]
    assert [(row["execution_id"], row["generation"], row["status"]) for row in first] == [
        (str(execution.pk), 1, "failed")
    ]
    assert first[0]["error"]["message"] == "refused 0"
    address = f"{BASE}dead-letters/{first[0]['id']}/retry/"
    assert root.post(address, {"reason": "again"}).json()["status"] == "pending"
    assert noted(execution) == [("retry", "root", "again")]
    drain()  # fails again: the next generation
    refused(root.post(address, {}), 409, "invalid_transition", actor="root")
    assert Execution.objects.locate(execution.pk).status == "failed"
    (second,) = root.get(f"{BASE}dead-letters/?open=true").json()["results"]
    assert second["generation"] == 2
    assert len(root.get(f"{BASE}dead-letters/").json()["results"]) == 2
    for unknown in ("0", "999999", "x", "9" * 30):
        refused(root.post(f"{BASE}dead-letters/{unknown}/retry/", {}), 404, "execution_not_found")


def test_a_letter_that_is_not_the_newest_retries_nothing() -> None:
    from django_durable.errors import InvalidTransition
    from django_durable.operators.retry import retry

    execution = run("fail")
    execution.retry(actor="eve")
    drain()
    with pytest.raises(InvalidTransition, match="newer dead letter than #1"):
        retry(execution, actor="eve", reason="", generation=1)
    assert DeadLetter.objects.filter(retried_at=None).count() == 1


def test_cancel_undoes_first_or_not() -> None:
    root = superuser()
    first, second = run("undo"), run("undo")
    assert root.post(of(first, "cancel"), {"reason": "no more"}).json()["status"] == "compensating"
    refused(root.post(of(first, "cancel"), {}), 409, "invalid_transition")
    assert root.post(of(second, "cancel"), {"compensate": False}).json()["status"] == "cancelled"
    drain()
    assert Execution.objects.locate(first.pk).status == "cancelled"
    assert noted(first) == [("cancel", "root", "no more")]


def test_pause_and_resume() -> None:
    execution, root = run("wait"), superuser()
    assert root.post(of(execution, "pause"), {"reason": "wait"}).json()["status"] == "paused"
    refused(root.post(of(execution, "pause"), {}), 409, "invalid_transition")
    assert root.post(of(execution, "resume"), {"reason": "go on"}).json()["status"] in ("pending", "waiting")
    assert noted(execution) == [("pause", "root", "wait"), ("resume", "root", "go on")]


def test_an_approval_is_listed_and_decided_once() -> None:
    execution, root = run("ask", 7), superuser()
    (asked,) = root.get(f"{BASE}approvals/").json()["results"]
    assert (asked["name"], asked["prompt"], asked["data"]) == ("ok", "spend?", {"amount": 7})
    body = {"name": "ok", "approved": True, "reason": "fine", "data": {"by": 1}}
    assert root.post(of(execution, "decide"), body).status_code == 200
    refused(root.post(of(execution, "decide"), body), 409, "invalid_transition")
    drain()
    assert Execution.objects.locate(execution.pk).output == [True, "root", "fine"]
    assert root.get(f"{BASE}approvals/").json()["results"] == []
    refused(root.post(of(run("wait"), "decide"), body), 409, "invalid_transition")


def test_a_fork_is_another_execution_and_says_what_it_may_do_again() -> None:
    execution, root = run("publish"), superuser()
    answer = root.post(of(execution, "fork"), {"from_position": 2, "reason": "try"})
    assert answer.status_code == 201
    body = answer.json()
    assert [effect["position"] for effect in body["effects_after"]] == [2, 3, 4, 5]
    forked = Execution.objects.locate(body["id"])
    assert answer["Location"] == f"http://testserver{of(forked)}"
    assert forked.forked_from == execution.pk
    refused(root.post(of(execution, "fork"), {"from_position": 900}), 409, "invalid_transition")
    refused(root.post(of(execution, "fork"), {"from_position": 1, "version": "9"}), 404, "unknown_workflow")


def test_a_signal_after_the_end_is_refused() -> None:
    refused(superuser().post(of(run(), "signal"), {"name": "go"}), 409, "execution_closed")


def test_an_update_is_checked_first() -> None:
    execution, root = run("update"), superuser()
    refused(root.post(of(execution, "update"), {"name": "add", "payload": "no"}), 422, "update_rejected")
    assert not Message.objects.exists()
    answer = root.post(of(execution, "update"), {"name": "add", "payload": 2})
    assert answer.json() == {"execution": str(execution.pk), "message_id": Message.objects.get().pk}
    refused(root.post(of(execution, "update"), {"name": "add", "timeout": 31}), 400, "invalid")


def test_a_callback_needs_its_token_and_nothing_else() -> None:
    execution, nobody = run("callback"), client_of(None)
    address = f"{BASE}callbacks/{execution.value('token')}/"
    assert nobody.post(address, {"value": {"paid": True}}).json() == {"decided": True}
    assert nobody.post(address, {"error": "late"}).json() == {"decided": False}
    drain()
    assert Execution.objects.locate(execution.pk).output == {"paid": True}
    refused(nobody.post(f"{BASE}callbacks/guess:ed/", {}), 404, "execution_not_found")
    refused(nobody.post(address, {"value": 1, "error": "both"}), 400, "invalid")
    refused(nobody.get(address), 405, "method_not_allowed")


def test_a_callback_may_be_failed_and_an_empty_body_completes_it_with_null() -> None:
    failed, completed = run("callback"), run("callback")
    nobody = client_of(None)
    nobody.post(f"{BASE}callbacks/{failed.value('token')}/", {"error": "declined"})
    nobody.post(f"{BASE}callbacks/{completed.value('token')}/")
    drain()
    error = Execution.objects.locate(failed.pk).error
    assert error is not None and error["message"] == "declined"
    done = Execution.objects.locate(completed.pk)
    assert (done.status, done.output) == ("completed", None)


def test_a_parked_hint_gets_another_chance() -> None:
    hint, root = parked_hint(), superuser()
    (row,) = root.get(f"{BASE}hints/?state=parked").json()["results"]
    assert (row["id"], row["failures"], row["category"]) == (str(hint.pk), 10, "plane-unresolved")
    assert "token" not in row
    answer = root.post(f"{BASE}hints/{hint.pk}/requeue/", {"reason": "plane is back"})
    assert (answer.json()["state"], answer.json()["failures"]) == ("live", 0)
    execution = Execution.objects.locate(hint.execution_id)
    assert noted(execution) == [("requeue", "root", "plane is back")]
    refused(root.post(f"{BASE}hints/{hint.pk}/requeue/", {}), 409, "invalid_transition")
    refused(root.post(f"{BASE}hints/nothing/requeue/", {}), 404, "execution_not_found")
    drain()
    assert Execution.objects.locate(execution.pk).status == "completed"
    assert not DispatchHint.objects.using(USING).exists()


def test_only_workflows_that_say_so_are_started_and_the_others_are_not_told_from_unknown_ones() -> None:
    root = superuser()
    hidden = root.post(EXECUTIONS, {"workflow": "rest.hidden"})
    unknown = root.post(EXECUTIONS, {"workflow": "rest.nobody"})
    refused(hidden, 404, "unknown_workflow")
    assert hidden.json() == {**unknown.json(), "detail": unknown.json()["detail"].replace("nobody", "hidden")}
    refused(root.post(EXECUTIONS, {"workflow": "rest.job", "version": "9"}), 404, "unknown_workflow")
    names = [row["name"] for row in root.get(f"{BASE}workflows/").json()["results"]]
    assert "rest.job" in names
    assert "rest.hidden" not in names
    assert not Execution.objects.exists()


def test_input_is_coerced_by_annotation_and_wrong_input_is_named() -> None:
    root = superuser()
    good = {"amount": "1.50", "at": "2030-01-01T00:00:00Z", "pause": "PT5S"}
    assert root.post(EXECUTIONS, {"workflow": "rest.order", "input": good}).status_code == 201
    for wrong, place in (
        ({"amount": [1]}, {"amount"}),
        ({"amount": 1, "at": "yesterday"}, {"at"}),
        ({"amount": 1, "much": 2}, {"much"}),
    ):
        answer = root.post(EXECUTIONS, {"workflow": "rest.order", "input": wrong})
        refused(answer, 400, "invalid")
        assert set(answer.json()["errors"]["input"]) == place
    refused(root.post(EXECUTIONS, {"workflow": "rest.order", "input": {}}), 400, "invalid")
    assert Execution.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "workflow"),
        ({"workflow": 5}, "workflow"),
        ({"workflow": "rest.job", "key": ""}, "key"),
        ({"workflow": "rest.job", "key": "x" * 256}, "key"),
        ({"workflow": "rest.job", "key": "a\x00"}, "key"),
        ({"workflow": "rest.job", "key": "a\ud800"}, "key"),
        ({"workflow": "rest.job", "input": []}, "input"),
        ({"workflow": "rest.job", "tags": {"a": [1]}}, "detail"),
        ({"workflow": "rest.job", "priority": 3}, "priority"),
        ({"workflow": "rest.job", "priority": "1"}, "priority"),
        ({"workflow": "rest.job", "run_after": "2030-01-01T00:00:00"}, "run_after"),
        ({"workflow": "rest.job", "run_after": -1}, "run_after"),
        ({"workflow": "rest.job", "queue": "q"}, "queue"),
    ],
)
def test_a_wrong_body_is_refused_by_the_name_of_what_is_wrong(body: dict[str, Any], place: str) -> None:
    answer = superuser().generic("POST", EXECUTIONS, json.dumps(body), content_type="application/json")
    refused(answer, 400, "invalid")
    assert set(answer.json()["errors"]) == {place}
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "{",
        "[]",
        "5",
        '{"workflow": NaN}',
        '{"a": 1e999}',
        "\ufeff{}",
        '{"a": ' + "[" * 100_000,
        '{"a": ' + "9" * 5000 + "}",
    ],
)
def test_a_body_that_is_no_json_object_is_refused(raw: str) -> None:
    answer = superuser().generic("POST", EXECUTIONS, raw, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["code"] in ("parse_error", "invalid")


def test_a_body_of_another_type_or_too_large_is_refused(settings: Any) -> None:
    root = superuser()
    refused(
        root.post(EXECUTIONS, "a=b", content_type="application/x-www-form-urlencoded"), 415, "unsupported_media_type"
    )
    settings.DURABLE = {"MAX_PAYLOAD_BYTES": 1000}
    body = {"workflow": "rest.job", "input": {"value": "x" * 2000}}
    refused(root.post(EXECUTIONS, body), 413, "payload_too_large")
    body["input"] = {"value": "x" * 70_000}
    refused(root.post(EXECUTIONS, body), 413, "payload_too_large")
    refused(root.post(of(run("wait"), "signal"), {"name": "go", "payload": "x" * 2000}), 413, "payload_too_large")


def test_run_after_is_kept() -> None:
    root = superuser()
    body = {"workflow": "rest.job", "run_after": "2090-01-01T00:00:00+02:00", "priority": 2, "correlation_id": "c"}
    answer = root.post(EXECUTIONS, body).json()
    assert (answer["priority"], answer["correlation_id"]) == (2, "c")
    assert root.get(f"{EXECUTIONS}{answer['id']}/").json()["run_after"] == "2089-12-31T22:00:00Z"
    drain()
    assert Execution.objects.get().status == "pending"
    assert root.post(EXECUTIONS, {"workflow": "rest.job", "run_after": 3600}).status_code == 201


def test_a_key_with_other_input_is_a_conflict() -> None:
    root = superuser()
    assert root.post(EXECUTIONS, {"workflow": "rest.job", "key": "k", "input": {"value": 1}}).status_code == 201
    refused(
        root.post(EXECUTIONS, {"workflow": "rest.job", "key": "k", "input": {"value": 2}}), 409, "execution_conflict"
    )


def test_result_is_there_or_not_yet() -> None:
    root = superuser()
    answer = root.get(of(run(value=5), "result"))
    assert (answer.status_code, answer.json()["output"], answer.json()["status"]) == (200, 5, "completed")
    answer = root.get(of(run("wait"), "result") + "?wait=20")  # in the test's transaction: nothing to wait for
    assert (answer.status_code, answer.json()["status"]) == (202, "waiting")
    failed = root.get(of(run("fail"), "result"))
    assert failed.status_code == 200
    assert (failed.json()["status"], failed.json()["output"]) == ("failed", None)
    assert failed.json()["error"]["message"] == "refused 0"
    for wrong in ("31", "-1", "x", "nan"):
        refused(root.get(of(run("wait"), "result") + f"?wait={wrong}"), 400, "invalid")


@pytest.mark.django_db(transaction=True)
def test_result_waits_for_the_end_outside_of_any_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    execution, root = run("wait"), superuser()
    waits = threading.Event()

    def wait(one: Execution[Any], timeout: float) -> Any:
        waits.set()
        return wait_for_result(one, timeout)

    monkeypatch.setattr(executions, "wait_for_result", wait)

    def end() -> None:
        try:
            waits.wait(20)
            execution.signal("go", "done")
            drain()
        finally:
            connections.close_all()

    atomic = {alias: connections[alias].settings_dict["ATOMIC_REQUESTS"] for alias in connections}
    for alias in connections:
        connections[alias].settings_dict["ATOMIC_REQUESTS"] = True
    other = threading.Thread(target=end)
    other.start()
    try:
        answer = root.get(of(execution, "result") + "?wait=20")
    finally:
        waits.set()
        other.join()
        for alias, before in atomic.items():
            connections[alias].settings_dict["ATOMIC_REQUESTS"] = before
    assert (answer.status_code, answer.json()["output"]) == (200, "done")


@pytest.mark.django_db(transaction=True)
def test_an_update_waits_for_its_reply() -> None:
    execution, root = run("update"), superuser()

    def reply() -> None:
        try:
            deadline = time.monotonic() + 20
            while not Message.objects.using(USING).exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            drain()
        finally:
            connections.close_all()

    other = threading.Thread(target=reply)
    other.start()
    try:
        answer = root.post(of(execution, "update"), {"name": "add", "payload": 2, "timeout": 20})
    finally:
        other.join()
    assert (answer.status_code, answer.json()["reply"]) == (200, "3")
    waiting = run("update")
    unanswered = root.post(of(waiting, "update"), {"name": "add", "payload": 2, "timeout": 0.01})
    assert (unanswered.status_code, "reply" in unanswered.json()) == (202, False)


def test_published_values_may_have_any_key() -> None:
    execution, root = run("publish"), superuser()
    assert root.get(of(execution, "values", "pro/gress")).json() == {"key": "pro/gress", "value": {"done": "0.50"}}
    refused(root.get(of(execution, "values", "other")), 404, "not_found")


def test_a_history_is_paged_in_order() -> None:
    execution, root = run("publish"), superuser()
    seen, address = [], of(execution, "history") + "?page_size=4"
    while address:
        page = root.get(address).json()
        seen += page["results"]
        address = page["next"]
    expected = execution.history()
    assert [row["position"] for row in seen] == [row["position"] for row in expected] == list(range(7))
    assert [row["output"] for row in seen[1:6]] == [0, 1, 2, 3, 4]
    for wrong in ("x", "1", "1.2.3", "9999999999999.1"):
        refused(root.get(of(execution, "history") + f"?cursor={wrong}"), 400, "invalid")


def test_stats_and_planes_and_the_document() -> None:
    root = superuser()
    run("fail")
    stats = root.get(f"{BASE}stats/").json()
    assert (stats["statuses"]["failed"], stats["open_dead_letters"], stats["unavailable"]) == (1, 1, [])
    assert root.get(f"{BASE}planes/").json() == {"next": None, "unavailable": [], "results": []}
    document = root.get(f"{BASE}schema/")
    assert document["Content-Type"] == "application/vnd.oai.openapi+json"
    assert document.json()["servers"] == [{"url": "/durable"}]


def test_what_is_not_there_is_404() -> None:
    root = superuser()
    for unknown in ("0190f0f0-0000-7000-8000-000000000000", "x", "%00", "a b"):
        refused(root.get(f"{EXECUTIONS}{unknown}/"), 404, "execution_not_found")


def test_filters_are_explicit() -> None:
    root = superuser()
    one = run("wait", key="k", tags={"n": 5, "a__b": "x"}, priority=1)
    run()
    for query in (
        "status=waiting",
        "status=waiting,paused",
        "key=k",
        "tag=n=5",
        "tag=a__b=x",
        "workflow=rest.job&status=waiting",
        "created_after=2020-01-01T00:00:00Z&key=k",
    ):
        found = root.get(f"{EXECUTIONS}?{query}").json()["results"]
        assert [row["id"] for row in found] == [str(one.pk)], query
    assert root.get(f"{EXECUTIONS}?created_before=2020-01-01T00:00:00Z").json()["results"] == []
    for query, place in (
        ("status=gone", "status"),
        ("encoded_input=x", "encoded_input"),
        ("key__startswith=k", "key__startswith"),
        ("ordering=key", "ordering"),
        ("parent_id=x", "parent_id"),
        ("created_after=x", "created_after"),
        ("tag=x", "tag"),
        ("tag=%00=x", "tag"),
        ("cursor=x", "cursor"),
        ("page_size=0", "page_size"),
        ("page_size=201", "page_size"),
        ("key=%00", "key"),
    ):
        answer = root.get(f"{EXECUTIONS}?{query}")
        refused(answer, 400, "invalid")
        assert set(answer.json()["errors"]) == {place}, query


def test_an_inactive_user_is_nobody() -> None:
    user = user_with("view_execution")
    client = client_of(user)
    get_user_model().objects.update(is_active=False)
    assert client.get(EXECUTIONS).status_code == 401


def test_due_work_is_not_started_twice_by_looking() -> None:
    order.using(key="k").start("1")
    make_due()
    assert superuser().get(EXECUTIONS).status_code == 200
    assert Execution.objects.get().status == "pending"


def test_schedules_are_listed_paused_resumed_and_triggered() -> None:
    root = superuser()
    made = add("nightly", "rest.job", actor="eve", every=3600)
    (row,) = root.get(f"{BASE}schedules/?name=nightly&paused=false").json()["results"]
    assert (row["id"], row["workflow"], row["every_seconds"]) == (str(made.pk), "rest.job", 3600)
    address = f"{BASE}schedules/{made.pk}/"
    assert root.post(f"{address}pause/", {"reason": "why"}).json()["paused_by"] == "root"
    refused(root.post(f"{address}pause/", {}), 409, "invalid_transition")
    assert root.get(f"{BASE}schedules/?paused=false").json()["results"] == []
    started = root.post(f"{address}trigger/", {})
    assert started.status_code == 201
    assert root.get(started["Location"]).json()["workflow"] == "rest.job"
    assert root.post(f"{address}resume/", {}).json()["paused_at"] is None
    notes = OperatorNote.objects.filter(execution_id=made.pk, actor="root").order_by("at", "id")
    assert [note.reason for note in notes] == ["why", "", ""]
    for unknown in ("x", "0190f0f0-0000-7000-8000-000000000000"):
        refused(root.post(f"{BASE}schedules/{unknown}/pause/", {}), 404, "schedule_not_found")
