"""Every address and every verb, for everybody who might come: checked on the server, crafted requests included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.test import Client

from django_durable import Execution
from django_durable.models import (
    Checkpoint,
    DeadLetter,
    DispatchHint,
    Message,
    OperatorAction,
    OperatorNote,
)
from tests.admin.flows import failed, paused, waiting
from tests.admin.visitors import EXECUTIONS, LISTS, VERBS, page_of, sign_in, verb_of

pytestmark = pytest.mark.django_db

TABLES = (Execution, Checkpoint, Message, DeadLetter, OperatorNote, OperatorAction, DispatchHint)
LOGIN, OK, DONE, FORBIDDEN = "login", 200, 302, 403
NOBODY = ("anonymous", "outsider")


def everything() -> list[Any]:
    return [list(table._base_manager.order_by("pk").values()) for table in TABLES]


def outcome(response: Any) -> int | str:
    at_login = response.status_code == 302 and response["Location"].startswith("/admin/login/")
    return LOGIN if at_login else response.status_code


@pytest.fixture
def subjects() -> dict[str, Execution[Any]]:
    """One execution for each verb, in a status that the verb may leave."""
    return {"retry": failed("a"), "cancel": waiting("b"), "pause": waiting("c"), "resume": paused("d")}


def expected_to_look(who: str) -> int | str:
    return LOGIN if who in NOBODY else FORBIDDEN if who in ("clerk", "blind") else OK


WHO = ("anonymous", "outsider", "clerk", "blind", "viewer", "operator", "reader", "superuser")


@pytest.mark.parametrize("who", WHO)
def test_pages_are_for_those_who_may_view_and_reading_changes_nothing(
    who: str, subjects: dict[str, Execution[Any]]
) -> None:
    client = sign_in(who)
    before = everything()
    pages = [*LISTS, *(page_of(execution) for execution in subjects.values())]
    for url in pages:
        assert outcome(client.get(url)) == expected_to_look(who), url
        assert outcome(client.head(url)) == expected_to_look(who), url
        # There is no form on them; whatever is sent is answered with the page.
        assert outcome(client.post(url, {"status": "completed", "_save": "1"})) == expected_to_look(who), url
    assert everything() == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("who", WHO)
def test_a_verb_needs_its_own_permission(who: str, verb: str, subjects: dict[str, Execution[Any]]) -> None:
    client, execution = sign_in(who), subjects[verb]
    may = who == "superuser" or (who == "operator" and verb == "retry")
    before = everything()
    url = verb_of(execution, verb)
    refused = LOGIN if who in NOBODY else FORBIDDEN

    assert outcome(client.get(url)) == (OK if may else refused)
    assert everything() == before, "asking changed something"
    assert outcome(client.post(url, {"reason": "crafted"})) == (DONE if may else refused)
    assert (everything() != before) is may
    if may:
        (note,) = OperatorNote.objects.filter(reason="crafted")
        assert (note.execution_id, note.verb, note.actor) == (execution.pk, verb, who)


@pytest.mark.parametrize("who", WHO)
def test_a_list_action_needs_its_own_permission(who: str, subjects: dict[str, Execution[Any]]) -> None:
    client = sign_in(who)
    may = {"operator": {"retry"}, "superuser": {"retry", "cancel"}}.get(who, set())
    refused = LOGIN if who in NOBODY else FORBIDDEN
    for verb in ("retry", "cancel"):
        before = everything()
        for data in crafted(f"{verb}_selected", subjects.values()):
            if verb not in may:
                assert outcome(client.post(EXECUTIONS, data)) == refused, data
        assert everything() == before
    if who not in (*NOBODY, "superuser", "operator"):
        return
    for verb in may:
        response = client.post(EXECUTIONS, first_request(f"{verb}_selected", [subjects[verb]]))
        assert response.status_code == OK
        assert everything() == before, "asking changed something"


@pytest.mark.parametrize("action", ["delete_selected", "signal_selected", "save", "__class__"])
def test_an_action_that_nobody_offers_is_refused_to_everybody(
    action: str, subjects: dict[str, Execution[Any]]
) -> None:
    client = sign_in("superuser")
    before = everything()
    for url in LISTS:
        for data in crafted(action, subjects.values()):
            assert outcome(client.post(url, {**data, "post": "yes"})) == FORBIDDEN, (url, data)
    assert everything() == before


def first_request(action: str, executions: Any) -> dict[str, Any]:
    return {"action": action, "index": "0", ACTION_CHECKBOX_NAME: [str(one.pk) for one in executions]}


def crafted(action: str, executions: Any) -> Iterator[dict[str, Any]]:
    """What the page would send, and what it would not."""
    data = first_request(action, executions)
    yield data
    yield {**data, "select_across": "1", "confirmed": "yes"}
    yield {**data, "confirmed": "yes", "reason": "crafted"}
    yield {name: value for name, value in data.items() if name != "index"} | {"confirmed": "yes"}
    # The button says which of two menus counts; the other one must not be a way around the check.
    yield {**data, "action": ["", action], "index": "1", "confirmed": "yes"}
    yield {**data, "action": [action, ""], "index": "1", "confirmed": "yes"}


def test_selecting_across_pages_acts_on_what_is_ticked_only(subjects: dict[str, Execution[Any]]) -> None:
    client = sign_in("superuser")
    data = first_request("cancel_selected", [subjects["cancel"]])
    client.post(EXECUTIONS, {**data, "select_across": "1", "confirmed": "yes"})
    cancelled = Execution.objects.filter(status="cancelled")
    assert [one.pk for one in cancelled] == [subjects["cancel"].pk]


@pytest.mark.parametrize("path", ["add/", "{id}/delete/", "{id}/history/", "{id}/"])
def test_there_is_no_address_to_add_or_delete(path: str, subjects: dict[str, Execution[Any]]) -> None:
    client = sign_in("superuser")
    before = everything()
    for url in LISTS:
        address = url + path.format(id=subjects["retry"].pk)
        assert client.get(address).status_code == 404, address
        assert client.post(address, {"post": "yes"}).status_code == 404, address
    assert everything() == before


def test_a_request_from_another_site_is_refused(subjects: dict[str, Execution[Any]]) -> None:
    client = sign_in("superuser", enforce_csrf_checks=True)
    before = everything()
    for verb, execution in subjects.items():
        assert client.post(verb_of(execution, verb), {"reason": "forged"}).status_code == FORBIDDEN
    data = {**first_request("cancel_selected", subjects.values()), "confirmed": "yes"}
    assert client.post(EXECUTIONS, data).status_code == FORBIDDEN
    assert everything() == before


def test_buttons_and_actions_are_offered_to_those_who_may(subjects: dict[str, Execution[Any]]) -> None:
    def offered(client: Client, execution: Execution[Any]) -> set[str]:
        page = client.get(page_of(execution)).content.decode()
        return {verb for verb in VERBS if verb_of(execution, verb) in page}

    def actions(client: Client) -> set[str]:
        page = client.get(EXECUTIONS).content.decode()
        return {verb for verb in VERBS if f'value="{verb}_selected"' in page}

    superuser, operator, viewer = sign_in("superuser"), sign_in("operator"), sign_in("viewer")
    assert offered(superuser, subjects["retry"]) == {"retry"}
    assert offered(superuser, subjects["cancel"]) == {"cancel", "pause"}
    assert offered(superuser, subjects["resume"]) == {"cancel", "resume"}
    assert offered(operator, subjects["retry"]) == {"retry"}
    assert offered(operator, subjects["cancel"]) == set()
    assert offered(viewer, subjects["retry"]) == set()
    assert (actions(superuser), actions(operator), actions(viewer)) == (set(VERBS), {"retry"}, set())


def test_the_index_shows_what_one_may_view_and_nothing_to_add() -> None:
    page = sign_in("viewer").get("/admin/").content.decode()
    assert all(url in page for url in LISTS)
    assert "addlink" not in page
    assert EXECUTIONS not in sign_in("clerk").get("/admin/").content.decode()
