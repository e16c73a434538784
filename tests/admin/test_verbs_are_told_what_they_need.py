"""Signal, update, decide, fork, cancel without undo, run again: asked for with a form, done by what code calls too."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from django_durable import Context, Execution, UpdateRejected, step, workflow
from django_durable.admin.offered import ACTS
from django_durable.models import ApprovalRequest, Message, OperatorNote
from django_durable.operators.permissions import PERMISSIONS
from tests.admin.flows import completed, failed, waiting
from tests.admin.html import Page, parse
from tests.admin.visitors import page_of, sign_in, verb_of
from tests.driving import USING, drain

pytestmark = pytest.mark.django_db

undone: list[str] = []


@step
def undo(what: str) -> None:
    undone.append(what)


@workflow("admin.talk")
def talk(ctx: Context, what: str) -> Any:
    ctx.compensate(undo, what)
    if what == "update":
        update = ctx.wait_for_update("address")
        update.reply("noted")
        return update.payload
    if what == "approval":
        found = ctx.wait_for_approval("legal", prompt="Pay it?", permission="auth.view_user")
        return [found.approved, found.actor, found.data]
    return ctx.wait_for_signal("go")


@talk.validator("address")
def check_address(payload: Any, execution: Execution[Any]) -> None:
    if payload == "":
        raise UpdateRejected("an address is not empty")


def talking(what: str) -> Execution[Any]:
    execution = talk.start(what)
    drain()
    return Execution.objects.locate(execution.pk)


def act(client: Client, execution: Execution[Any], verb: str, **told: Any) -> Page:
    return parse(client.post(verb_of(execution, verb), told, follow=True))


def output(execution: Execution[Any]) -> Any:
    drain()
    return Execution.objects.locate(execution.pk).output


def test_a_signal_carries_the_json_that_was_written(superuser: Client) -> None:
    execution = talking("signal")
    page = parse(superuser.get(verb_of(execution, "signal")))
    assert {"name", "payload"} <= {name for name, _value in page.fields()}
    asked = act(superuser, execution, "signal", name="go", payload="{not json")
    assert "It is not JSON" in asked.text
    assert not Message.objects.exists()
    done = act(superuser, execution, "signal", name="go", payload='{"a": 12345678901234567890}')
    assert done.messages() == [f"Signal go is sent to execution {execution.pk}."]
    assert output(execution) == {"a": 12345678901234567890}
    (late,) = act(superuser, execution, "signal", name="go").messages()
    assert "takes no more messages" in late


def test_an_update_meets_the_workflows_validator(superuser: Client) -> None:
    execution = talking("update")
    (refused,) = act(superuser, execution, "update", name="address", payload='""').messages()
    assert "address is not empty" in refused
    assert not Message.objects.exists()
    act(superuser, execution, "update", name="address", payload='"home"')
    assert output(execution) == "home"


def test_an_approval_is_decided_once_by_somebody_who_may(superuser: Client) -> None:
    execution = talking("approval")
    clerk = sign_in("viewer", "decide_approval", name="clerk")
    (refused,) = act(clerk, execution, "decide", name="legal", approved="yes").messages()
    assert "it takes auth.view_user" in refused
    assert ApprovalRequest.objects.get().outcome == ""
    page = parse(superuser.get(verb_of(execution, "decide")))
    assert "legal: Pay it?" in page.text
    told = act(superuser, execution, "decide", name="legal", approved="no", reason="too much", answer="7")
    assert told.messages() == [f"Approval legal of execution {execution.pk} is rejected."]
    assert output(execution) == [False, "superuser", 7]
    asked = act(superuser, execution, "decide", name="legal", approved="yes")
    assert "Select a valid choice" in asked.text  # nothing is asked for any more


def test_a_fork_tells_where_it_went(superuser: Client) -> None:
    execution = failed("order-1", value=3)
    (told,) = act(superuser, execution, "fork", from_position="1", reason="new card").messages()
    fork = Execution.objects.get(forked_from=execution.pk)
    assert told == f"Execution {fork.pk} goes on from position 1 of {execution.pk}."
    note = OperatorNote.objects.get(execution_id=execution.pk)
    assert (note.verb, note.actor) == ("fork", "superuser")
    assert note.reason.startswith("new card")
    (refused,) = act(superuser, execution, "fork", from_position="99", reason="").messages()
    assert "99" in refused


def test_a_run_again_is_a_new_execution_and_leaves_the_old_one(superuser: Client) -> None:
    execution = completed("order-1", value=3)
    act(superuser, execution, "rerun", reason="for the books")
    again = Execution.objects.get(forked_from=execution.pk)
    assert (again.key, again.status) == (None, "pending")
    assert output(again) == 3


def test_a_cancel_without_undo_ends_at_once(superuser: Client) -> None:
    undone.clear()
    first, second = talking("a"), talking("b")
    act(superuser, first, "cancel", reason="")
    act(superuser, second, "cancel-at-once", reason="")
    assert [Execution.objects.locate(one.pk).status for one in (first, second)] == ["compensating", "cancelled"]
    act(superuser, first, "cancel-at-once", reason="")
    assert Execution.objects.locate(first.pk).status == "cancelled"
    drain()
    assert undone == []


def everything() -> list[Any]:
    rows = Execution._base_manager.using(USING).order_by("id").values_list("id", "status", "revision")
    return [list(rows), Message.objects.count(), OperatorNote.objects.count()]


@pytest.mark.parametrize("verb", list(ACTS))
def test_each_verb_needs_its_own_permission_to_be_asked_and_done(verb: str) -> None:
    """Every permission but its own is not enough; its own with the right to look is."""
    execution = waiting()
    own = PERMISSIONS[ACTS[verb].permission].partition(".")[2]
    others = sorted({name.partition(".")[2] for name in PERMISSIONS.values()} - {own})
    held = Permission.objects.filter(content_type__app_label="django_durable", codename__in=others)
    stranger = sign_in("viewer", *held.values_list("codename", flat=True), name="stranger")
    before = everything()
    told = {"reason": "x", "name": "go", "approved": "yes", "from_position": "0"}
    assert stranger.get(verb_of(execution, verb)).status_code == 403
    assert stranger.post(verb_of(execution, verb), told).status_code == 403
    assert everything() == before
    entitled = sign_in("viewer", own, name="entitled")
    assert entitled.get(verb_of(execution, verb)).status_code == 200
    assert everything() == before
    assert entitled.post(verb_of(execution, verb), told).status_code in (200, 302)


def test_the_buttons_are_those_that_fit(superuser: Client) -> None:
    links = parse(superuser.get(page_of(talking("approval")))).links()
    offered = {verb for verb in ACTS if any(link.endswith(f"/{verb}/") for link in links)}
    assert offered == {"cancel", "cancel-at-once", "pause", "signal", "update", "decide", "fork"}
