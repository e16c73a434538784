"""Asking, confirming, acting: by the same functions as code and command line, with a name, a reason, an answer."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.test import Client

from django_durable import Execution
from django_durable.models import DeadLetter, OperatorAction, OperatorNote
from tests.admin import flows
from tests.admin.flows import completed, failed, overwrite, paused, waiting
from tests.admin.html import Page, parse
from tests.admin.visitors import EXECUTIONS, page_of, sign_in, verb_of
from tests.calling import durable
from tests.driving import claim, drain

pytestmark = pytest.mark.django_db


def status(execution: Execution[Any]) -> str:
    return Execution.objects.locate(execution.pk).status


def act(client: Client, execution: Execution[Any], verb: str, reason: str = "because") -> Page:
    """Confirm, and arrive on the execution's page."""
    response = client.post(verb_of(execution, verb), {"reason": reason}, follow=True)
    assert response.redirect_chain == [(page_of(execution), 302)]
    return parse(response)


def tick(client: Client, verb: str, *executions: Execution[Any], query: str = "", **more: str) -> Any:
    data = {"action": f"{verb}_selected", ACTION_CHECKBOX_NAME: [str(one.pk) for one in executions], **more}
    return client.post(f"{EXECUTIONS}{query}", data, follow=True)


# -- one execution ---------------------------------------------------------------------------------------------


def test_the_page_leads_to_a_confirmation_that_asks_for_a_reason(superuser: Client) -> None:
    execution = failed("order-1")
    assert verb_of(execution, "retry") in parse(superuser.get(page_of(execution))).links()

    page = parse(superuser.get(verb_of(execution, "retry")))
    assert {"order-1", "failed", str(execution.pk)} <= set(page.cells)
    assert "what ended the run is removed and runs anew" in page.text
    names = [name for name, _value in page.fields()]
    assert "reason" in names
    assert "csrfmiddlewaretoken" in names
    assert page_of(execution) in page.links(), "the way back"
    assert status(execution) == "failed"


def test_a_retry_is_recorded_with_name_and_reason_and_mends_the_run(superuser: Client) -> None:
    execution = failed("order-1")
    page = act(superuser, execution, "retry", "the card is valid now")
    assert page.messages() == [f"Execution {execution.pk} is retried."]
    note = OperatorNote.objects.get()
    assert (note.verb, note.actor, note.reason) == ("retry", "superuser", "the card is valid now")
    assert OperatorAction.objects.get().actor == "superuser"
    assert DeadLetter.objects.get().retried_by == "superuser"
    assert "the card is valid now" in page.cells

    flows.state["broken"] = False
    drain()
    assert status(execution) == "completed"


def test_of_two_operators_one_wins_and_the_other_is_told_who(superuser: Client) -> None:
    execution, late = failed(), sign_in("operator", name="late")
    assert late.get(verb_of(execution, "retry")).status_code == 200
    act(superuser, execution, "retry")
    page = act(late, execution, "retry")
    (message,) = page.messages()
    assert "was retried by superuser already" in message
    assert [note.actor for note in OperatorNote.objects.all()] == ["superuser"]


def test_a_cancel_that_comes_too_late_is_told_who_was_first(superuser: Client) -> None:
    execution = waiting()
    page = act(superuser, execution, "cancel", "ordered twice")
    assert page.messages() == [f"Execution {execution.pk} is cancelled."]
    assert status(execution) == "cancelled"

    late = sign_in("viewer", "cancel_execution", name="late")
    assert act(late, execution, "cancel").messages() == [
        f"Execution {execution.pk} is cancelled; it was cancelled by superuser already."
    ]
    ended = completed()
    assert act(late, ended, "cancel").messages() == [
        f"Execution {ended.pk} is completed; there is nothing to cancel."
    ]
    assert OperatorNote.objects.count() == 1


def test_pause_and_resume(superuser: Client) -> None:
    execution = waiting()
    assert act(superuser, execution, "pause", "look first").messages() == [f"Execution {execution.pk} is paused."]
    assert status(execution) == "paused"
    (refused,) = act(superuser, execution, "pause").messages()
    assert "is paused; it cannot be paused" in refused

    assert act(superuser, execution, "resume", "seen").messages() == [f"Execution {execution.pk} goes on."]
    assert status(execution) == "pending"
    (refused,) = act(superuser, execution, "resume").messages()
    assert "there is nothing to resume" in refused
    assert [note.reason for note in OperatorNote.objects.order_by("id")] == ["look first", "seen"]


def test_a_breakpoint_is_passed_by_resume(superuser: Client) -> None:
    execution = paused(value=7)
    act(superuser, execution, "resume")
    drain()
    assert Execution.objects.locate(execution.pk).output == 7


def test_a_running_execution_pauses_later_and_the_message_says_so(superuser: Client) -> None:
    execution = flows.job.start(1)
    assert claim()
    assert act(superuser, execution, "pause").messages() == [f"Execution {execution.pk} pauses at its next position."]
    page = parse(superuser.get(page_of(execution)))
    assert verb_of(execution, "resume") in page.links()
    assert verb_of(execution, "pause") not in page.links()
    assert act(superuser, execution, "resume").messages() == [f"Execution {execution.pk} goes on."]
    assert Execution.objects.locate(execution.pk).pause_requested_at is None


@pytest.mark.parametrize(
    "verb, make", [("retry", completed), ("pause", completed), ("resume", failed), ("retry", waiting)]
)
def test_a_refusal_is_the_engines_own_text(verb: str, make: Any, superuser: Client) -> None:
    execution = make()
    (message,) = act(superuser, execution, verb).messages()
    refused = durable(verb, execution.pk, actor="anna")
    assert refused.code == 1
    assert message.lower() == refused.error.lower()
    assert not OperatorNote.objects.exists()


def test_a_reason_may_be_left_out_and_one_that_is_too_long_is_asked_for_again(superuser: Client) -> None:
    execution = failed()
    page = parse(superuser.post(verb_of(execution, "retry"), {"reason": "x" * 2001}))
    assert "at most 2000 characters" in page.text
    assert status(execution) == "failed"
    superuser.post(verb_of(execution, "retry"))
    assert OperatorNote.objects.get().reason == ""


def test_an_execution_that_is_gone_is_not_found(superuser: Client) -> None:
    execution = failed()
    execution.id = type(execution.id)(int=1)
    for url in (page_of(execution), verb_of(execution, "retry")):
        assert superuser.get(url).status_code == 404
        assert superuser.post(url).status_code == 404
    assert superuser.get(f"{EXECUTIONS}no-id/change/").status_code == 404


def test_other_methods_change_nothing(superuser: Client) -> None:
    execution = failed()
    for method in (superuser.head, superuser.options, superuser.put, superuser.delete, superuser.patch):
        method(verb_of(execution, "retry"))
        method(page_of(execution))
    assert status(execution) == "failed"


# -- what is ticked in the list --------------------------------------------------------------------------------


def test_an_action_lists_what_will_change_and_changes_nothing(superuser: Client) -> None:
    first, second, ended = failed("a"), failed("b"), completed("c")
    page = parse(tick(superuser, "retry", first, second, ended, index="0"))
    assert page.cells.count("Retry") == 2
    assert page.cells.count("Nothing: its status does not allow it.") == 1
    assert {"a", "b", "c"} <= set(page.cells)
    assert "Retry 3 executions" in page.text
    assert [status(one) for one in (first, second, ended)] == ["failed", "failed", "completed"]

    fields = page.fields()
    assert ("action", "retry_selected") in fields
    assert [value for name, value in fields if name == ACTION_CHECKBOX_NAME] == [
        str(pk) for pk in sorted(one.pk for one in (first, second, ended))
    ]


def test_the_confirmed_action_acts_on_each_by_itself_and_tells_every_outcome(superuser: Client) -> None:
    first, second, ended = failed("a"), failed("b"), completed("c")
    sign_in("operator", name="quick").post(verb_of(first, "retry"))
    response = tick(
        superuser, "retry", first, second, ended, query="?status__exact=failed", confirmed="yes", reason="mended"
    )
    assert response.redirect_chain == [(f"{EXECUTIONS}?status__exact=failed", 302)]
    told = parse(response).messages()
    assert len(told) == 3
    assert told[0] == f"Execution {second.pk} is retried."
    assert any("was retried by quick already" in text for text in told)
    assert any(f"{ended.pk} is completed" in text for text in told)
    assert [status(one) for one in (first, second, ended)] == ["pending", "pending", "completed"]
    assert OperatorNote.objects.get(execution_id=second.pk).reason == "mended"


def test_many_are_cancelled_and_the_messages_stay_few(superuser: Client) -> None:
    executions = [waiting(str(number)) for number in range(14)]
    told = parse(tick(superuser, "cancel", *executions, confirmed="yes")).messages()
    assert len(told) == 11
    assert told[-1] == "And 4 more like these."
    assert {status(one) for one in executions} == {"cancelled"}


def test_nothing_ticked_is_nothing_done(superuser: Client) -> None:
    waiting()
    page = parse(superuser.post(EXECUTIONS, {"action": "cancel_selected", "index": "0"}, follow=True))
    assert any("Items must be selected" in text for text in page.messages())
    assert not OperatorNote.objects.exists()


def test_what_is_gone_is_told_and_the_others_are_done(superuser: Client) -> None:
    execution, gone = waiting("a"), waiting("b")
    gone.id = type(gone.id)(int=1)
    told = parse(tick(superuser, "cancel", execution, gone, confirmed="yes")).messages()
    assert told == ["Executions not found: 1", f"Execution {execution.pk} is cancelled."]
    assert parse(tick(superuser, "cancel", gone, confirmed="yes")).messages() == ["Executions not found: 1"]


def test_ids_that_no_page_has_given_out_are_a_bad_request(superuser: Client) -> None:
    execution = waiting()
    data = {"action": "cancel_selected", "confirmed": "yes", "index": "0"}
    for ids in (["junk"], [str(execution.pk), "x' OR 1=1"], [str(type(execution.pk)(int=n)) for n in range(101)]):
        assert superuser.post(EXECUTIONS, {**data, ACTION_CHECKBOX_NAME: ids}).status_code == 400
    assert status(execution) == "waiting"


# -- the same act everywhere -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "verb, make", [("retry", failed), ("cancel", waiting), ("pause", waiting), ("resume", paused)]
)
def test_admin_command_and_code_leave_the_same_rows(verb: str, make: Any, superuser: Client) -> None:
    by_admin, by_command, by_code = (make() for _ in range(3))
    superuser.post(verb_of(by_admin, verb), {"reason": "r"})
    assert durable(verb, by_command.pk, actor="superuser", reason="r").code == 0
    getattr(by_code, verb)(actor="superuser", **({} if verb == "resume" else {"reason": "r"}))

    def trace(execution: Execution[Any]) -> Any:
        row = Execution.objects.locate(execution.pk)
        (note,) = OperatorNote.objects.filter(execution_id=execution.pk).values("verb", "actor", "revision")
        action = OperatorAction.objects.filter(execution_id=execution.pk).values_list("verb", "actor")
        history = [(entry["kind"], entry["status"]) for entry in row.history()]
        letters = DeadLetter.objects.filter(execution_id=execution.pk).values_list("retried_by", flat=True)
        return row.status, row.revision, note, list(action), history, list(letters)

    assert trace(by_admin) == trace(by_command) == trace(by_code)


def test_a_retry_of_a_blocked_execution_looks_again(superuser: Client) -> None:
    execution = waiting()
    overwrite(execution, status="blocked")
    assert verb_of(execution, "retry") in parse(superuser.get(page_of(execution))).links()
    act(superuser, execution, "retry")
    assert status(execution) == "pending"


def test_a_superseded_run_says_why_it_cannot_be_retried(superuser: Client) -> None:
    execution = failed("key")
    newer = flows.job.using(key="key", on_conflict="restart").start(0, "wait")
    assert newer.pk != execution.pk
    (message,) = act(superuser, execution, "retry").messages()
    assert "superseded" in message
    assert "'key'" in message
