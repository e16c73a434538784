"""Code, command line, REST and admin: the same verb changes the same, and leaves the same record of who and why."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from django_durable import Execution
from django_durable.events import publish
from django_durable.models import DeadLetter, DispatchHint, Message, OperatorAction, OperatorNote
from django_durable.operators.requeue import requeue
from tests.calling import durable
from tests.driving import USING, drain
from tests.rest import flows
from tests.rest.flows import job, run
from tests.rest.requests import parked_hint
from tests.rest.visitors import BASE, EXECUTIONS, client_of, of

pytestmark = pytest.mark.django_db(transaction=True)

WHO, WHY = "eve", "as agreed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One verb, on an execution that has come as far as ``what``."""

    what: str
    code: Callable[[Execution[Any]], Any]
    command: tuple[str, ...] = ()
    rest: dict[str, Any] = field(default_factory=dict)
    has_page: bool = False


def said(**more: Any) -> dict[str, Any]:
    return {"reason": WHY, **more}


BY = {"actor": WHO, "reason": WHY}
ATTRIBUTED = ("--actor", WHO, "--reason", WHY)

VERBS: dict[str, Verb] = {
    "retry": Verb(what="fail", code=lambda one: one.retry(**BY), command=ATTRIBUTED, rest=said(), has_page=True),
    "cancel": Verb(what="undo", code=lambda one: one.cancel(**BY), command=ATTRIBUTED, rest=said(), has_page=True),
    "pause": Verb(what="wait", code=lambda one: one.pause(**BY), command=ATTRIBUTED, rest=said(), has_page=True),
    "resume": Verb(
        what="break",
        code=lambda one: _resume(one),
        command=ATTRIBUTED,
        rest=said(),
        has_page=True,
    ),
    "decide": Verb(
        what="ask",
        code=lambda one: one.decide("ok", approved=True, data={"a": 1}, **BY),
        command=("ok", "--approve", "--data", '{"a": 1}', *ATTRIBUTED),
        rest=said(name="ok", approved=True, data={"a": 1}),
    ),
    "signal": Verb(
        what="wait",
        code=lambda one: one.signal("go", {"a": [1, 2.5]}, dedup_key="d"),
        command=("go", "--payload", '{"a": [1, 2.5]}', "--dedup-key", "d"),
        rest={"name": "go", "payload": {"a": [1, 2.5]}, "dedup_key": "d"},
    ),
    "update": Verb(
        what="update",
        code=lambda one: one.send_update("add", 2),
        command=("add", "--payload", "2"),
        rest={"name": "add", "payload": 2},
    ),
    "fork": Verb(
        what="publish",
        code=lambda one: one.fork(from_position=2, **BY),
        command=("--from-position", "2", *ATTRIBUTED),
        rest=said(from_position=2),
    ),
}


def _resume(execution: Execution[Any]) -> None:
    from django_durable.operators.resume import resume

    resume(execution, **BY)


def by_code(verb: str, execution: Execution[Any]) -> None:
    VERBS[verb].code(execution)


def by_command(verb: str, execution: Execution[Any]) -> None:
    called = durable(verb, str(execution.pk), *VERBS[verb].command)
    assert called.code == 0, called.error


def by_rest(verb: str, execution: Execution[Any]) -> None:
    answer = client_of(user()).post(of(execution, verb), VERBS[verb].rest)
    assert answer.status_code in (200, 201), answer.content


def by_page(verb: str, execution: Execution[Any]) -> None:
    browser = Client()
    browser.force_login(user())
    answer = browser.post(f"/admin/django_durable/execution/{execution.pk}/{verb}/", {"reason": WHY})
    assert answer.status_code == 302, answer.content


def user() -> Any:
    found = get_user_model().objects.filter(username=WHO).first()
    return found or get_user_model().objects.create_superuser(WHO)


VARYING = {
    *("id", "chain_id", "root_id", "seed", "created_at", "started_at", "finished_at", "claimed_at", "worker"),
    *(
        "pause_requested_at",
        "cancel_requested_at",
        "forked_from",
        "wake_at",
        "deadline",
        "lease_token",
        "current_key",
    ),
}


def outcome(execution: Execution[Any]) -> list[Any]:
    """Everything that the verb has written, without ids and times."""
    related = [execution.pk, *Execution.objects.filter(forked_from=execution.pk).values_list("pk", flat=True)]
    found: list[Any] = []
    for pk in related:
        one = Execution.objects.get(pk=pk)
        row = {
            f.attname: getattr(one, f.attname) for f in Execution._meta.concrete_fields if f.attname not in VARYING
        }
        notes = OperatorNote.objects.filter(execution_id=pk).order_by("at", "id")
        actions = OperatorAction.objects.using(USING).filter(execution_id=pk).order_by("at", "id")
        messages = Message.objects.filter(execution_id=pk).order_by("id")
        letters = DeadLetter.objects.filter(execution_id=pk)
        found.append(
            {
                "row": row,
                "asked": (one.pause_requested_at is not None, one.cancel_requested_at is not None),
                "history": [(c.position, c.kind, c.name, c.status, c.encoded_output) for c in one.checkpoints.all()],
                "notes": [(note.verb, note.actor, note.reason, note.revision) for note in notes],
                "actions": [(action.verb, action.actor) for action in actions],
                "same ids": [note.pk for note in notes] == [action.pk for action in actions],
                "messages": [(m.channel, m.payload, m.dedup_key, m.consumed_by) for m in messages],
                "letters": [(letter.generation, letter.retried_by) for letter in letters],
            }
        )
    return found


def without_ids(found: Any) -> Any:
    """As JSON; ids and times that stand in texts are as different as those in columns."""
    text = json.dumps(found, default=str)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "an id", text)
    return json.loads(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", "a time", text))


WAYS = {"code": by_code, "command": by_command, "REST": by_rest, "admin": by_page}


@pytest.mark.parametrize("verb", VERBS)
def test_every_way_changes_and_records_the_same(verb: str) -> None:
    outcomes: dict[str, Any] = {}
    for way, act in WAYS.items():
        if way == "admin" and not VERBS[verb].has_page:
            continue
        flows.state["broken"] = True
        execution = run(VERBS[verb].what, 3)
        act(verb, execution)
        at_once = outcome(execution)
        flows.state["broken"] = False
        drain()
        outcomes[way] = without_ids([at_once, outcome(execution)])
    first = outcomes["code"]
    for way, found in outcomes.items():
        assert found == first, way
    attributed = "reason" in VERBS[verb].rest
    recorded = [note for one in first[0] for note in one["notes"]]
    assert all(actor == WHO and reason.startswith(WHY) for _verb, actor, reason, _revision in recorded)
    assert bool(recorded) is attributed
    assert all(one["same ids"] for one in first[0])


def test_a_start_is_the_same_every_way() -> None:
    starts: dict[str, Callable[[], Any]] = {
        "code": lambda: job.using(priority=1, key="code").start("", 5),
        "command": lambda: durable(
            *("start", "rest.job", "--input", '{"what": "", "value": 5}', "--priority", "1", "--key", "command")
        ),
        "REST": lambda: client_of(user()).post(
            EXECUTIONS,
            {"workflow": "rest.job", "input": {"what": "", "value": 5}, "priority": 1, "key": "REST"},
        ),
    }
    outcomes = {}
    for way, act in starts.items():
        act()
        execution = Execution.objects.get(key=way)
        drain()
        found = outcome(execution)
        assert found[0]["row"].pop("key") == way
        outcomes[way] = without_ids(found)
    assert outcomes["command"] == outcomes["code"] == outcomes["REST"]


def test_an_event_is_the_same_every_way() -> None:
    ways: dict[str, Callable[[], Any]] = {
        "code": lambda: publish("paid", {"order": 1}),
        "command": lambda: durable("publish", "paid", "--payload", '{"order": 1}'),
        "REST": lambda: client_of(user()).post(f"{BASE}events/", {"name": "paid", "payload": {"order": 1}}),
    }
    for act in ways.values():
        execution = run("event")
        act()
        drain()
        done = Execution.objects.locate(execution.pk)
        assert (done.status, done.output) == ("completed", {"order": 1})


def test_a_parked_hint_is_requeued_the_same_every_way() -> None:
    ways: dict[str, Callable[[DispatchHint], Any]] = {
        "code": lambda hint: requeue(hint.pk, **BY),
        "REST": lambda hint: client_of(user()).post(f"{BASE}hints/{hint.pk}/requeue/", said()),
    }
    outcomes = {}
    for way, act in ways.items():
        hint = parked_hint()
        act(hint)
        hint.refresh_from_db(using=USING)
        assert (hint.state, hint.failures, hint.category) == (DispatchHint.State.LIVE, 0, "")
        drain()
        outcomes[way] = without_ids(outcome(Execution.objects.locate(hint.execution_id)))
    assert outcomes["code"] == outcomes["REST"]
    (one,) = outcomes["code"]
    assert [note[:3] for note in one["notes"]] == [["requeue", WHO, WHY]]
    assert one["same ids"]
