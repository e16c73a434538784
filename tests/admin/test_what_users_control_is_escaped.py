"""Markup in any column, in names of users and in addresses is shown as text: it adds no element and no attribute."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import models, transaction
from django.db.models import QuerySet
from django.test import Client

from django_durable import Execution
from django_durable.models import (
    Checkpoint,
    DeadLetter,
    DispatchHint,
    Join,
    Message,
    OperatorAction,
    OperatorNote,
)
from django_durable.payloads import encode, encode_failure
from tests.admin.flows import failed, overwrite, waiting
from tests.admin.html import Page, parse
from tests.admin.visitors import DEAD_LETTERS, EXECUTIONS, LISTS, page_of, sign_in, verb_of

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)></pre></td></script>{{7*7}}javascript:x&lt;"
# As long, sorted to the same place, and nothing in it that a parser could mistake.
HARMLESS = re.sub(r"[^a-z0-9]", "0", HOSTILE)
ROWS = (Execution, Checkpoint, Message, DeadLetter, OperatorNote, OperatorAction, DispatchHint)
# What the engine compares with what it knows; without it a row is shown nowhere.
KEPT = {("execution", "status"), ("execution", "current_key")}


def spoil(execution: Execution[Any], text: str) -> None:
    """Put a text into every text column of every row that belongs to the execution."""
    for table in ROWS:
        owner = {"pk": execution.pk} if table is Execution else {"execution_id": execution.pk}
        columns = {
            field.attname: value_for(field, text)
            for field in table._meta.concrete_fields
            if (table._meta.model_name, field.name) not in KEPT
            and isinstance(field, models.CharField | models.TextField | models.JSONField)
        }
        assert columns
        assert QuerySet(table).filter(**owner).update(**columns), table.__name__


def value_for(field: Any, text: str) -> Any:
    """The text in the form that the column has."""
    if field.name in ("encoded_error", "error"):
        return encode_failure(named(text)(text), step=text, attempts=1)
    if field.name in ("encoded_input", "encoded_output"):
        return encode({text: [text]}, where="a test")
    if field.name == "payload":
        return encode(text[:20], where="a test")  # short values stand in the line
    if field.name == "tags":
        return {text: text}
    if field.name == "takeovers":
        return json.dumps([{"worker": text, "start": text, "end": text, "reason": text}])
    if field.name == "attempts_log":
        return json.dumps([{"attempt": text, "type": text}])
    if field.name in ("awaiting", "failures", "log"):
        return json.dumps([text])
    return text[: field.max_length] if field.max_length else text


def named(text: str) -> type[Exception]:
    """An exception class of that name."""
    return type(text, (Exception,), {"__module__": "m"})


def filled(text: str) -> Execution[Any]:
    """An execution with a row in every table, every text of which is this one."""
    execution, child = failed("key"), waiting("child")
    execution.retry(actor="anna", reason="try")
    Message.objects.create(execution_id=execution.pk, channel="x", payload="1", accepted_at=execution.created_at)
    Join.objects.create(execution_id=execution.pk, position=1, needs=2)
    overwrite(child, parent_id=execution.pk, workflow=text, key=text)
    spoil(execution, text)
    return execution


def pages_of(client: Client, execution: Execution[Any], text: str) -> Iterator[tuple[str, Page]]:
    for url in LISTS:
        yield url, parse(client.get(url))
    yield "page", parse(client.get(page_of(execution)))
    for verb in ("retry", "cancel", "pause", "resume"):
        yield verb, parse(client.get(verb_of(execution, verb)))
    ticked = {"action": "cancel_selected", ACTION_CHECKBOX_NAME: [str(execution.pk)]}
    yield "action", parse(client.post(EXECUTIONS, ticked))
    yield (
        "action with a reason too long",
        parse(client.post(EXECUTIONS, {**ticked, "confirmed": "yes", "reason": text * 100})),
    )
    yield "search", parse(client.get(EXECUTIONS, {"q": text}))
    yield "filters", parse(client.get(EXECUTIONS, {"workflow": text, "queue": text, "status__exact": text}))
    yield "letters", parse(client.get(DEAD_LETTERS, {"workflow": text, "status": text, "retried": text}))
    # Refused, with a message that names who was first.
    yield "outcome", parse(client.post(verb_of(execution, "retry"), {"reason": text}, follow=True))
    yield "cancelled", parse(client.post(verb_of(execution, "cancel"), {"reason": text}, follow=True))
    yield "too late", parse(client.post(verb_of(execution, "cancel"), {"reason": text}, follow=True))


def shown(text: str) -> dict[str, Page]:
    client = sign_in("superuser", name=text)
    return dict(pages_of(client, filled(text), text))


def test_markup_in_data_adds_no_element_and_no_attribute() -> None:
    hostile, harmless = in_turn(HOSTILE), in_turn(HARMLESS)
    assert hostile.keys() == harmless.keys()
    for name, page in hostile.items():
        assert page.shape == harmless[name].shape, name


def in_turn(text: str) -> dict[str, Page]:
    """The pages of a database that has nothing else in it."""
    with transaction.atomic():
        pages = shown(text)
        transaction.set_rollback(True)
    return pages


def test_the_data_is_there_as_text_and_no_template_runs_it() -> None:
    for name, page in shown(HOSTILE).items():
        # With its braces: had a template taken it for one of its own, they would be gone.
        assert HOSTILE in page.text or any(HOSTILE in attributes.values() for _tag, attributes in page.elements), name


def test_no_address_on_a_page_comes_from_data() -> None:
    for name, page in shown(HOSTILE).items():
        for attributes in (attributes for _tag, attributes in page.elements):
            for attribute in ("href", "src", "action", "formaction"):
                target = attributes.get(attribute, "")
                assert "javascript:" not in target or target.startswith("?"), (name, target)
                assert re.match(r"(/|\?|#|$)", target), (name, target)


def test_the_probe_would_see_an_element_and_an_attribute() -> None:
    good = Page("<td title='a'>text</td>")
    assert Page(f"<td title='a'>{HOSTILE}</td>").shape != good.shape
    assert Page("<td title='' onclick=''>text</td>").shape != good.shape


def test_an_id_in_an_address_is_no_markup_either(superuser: Client) -> None:
    for path in (f"{EXECUTIONS}{HOSTILE}/change/", f"{EXECUTIONS}{HOSTILE}/retry/", f"{EXECUTIONS}{uuid4()}/change/"):
        response = superuser.get(path)
        assert response.status_code == 404
        assert b"<script>alert" not in response.content
