"""Inputs, results, messages, error texts: type and size for those who may look, values for those who may see."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.test import Client, override_settings

from django_durable import Execution
from django_durable.models import Checkpoint, DeadLetter, Message
from django_durable.payloads import encode
from tests.admin.flows import completed, failed, overwrite, waiting
from tests.admin.html import parse
from tests.admin.visitors import DEAD_LETTERS, EXECUTIONS, LISTS, page_of, sign_in, verb_of

pytestmark = pytest.mark.django_db

SECRET = "card 4111-1111"


def with_secret_everywhere() -> list[Execution[Any]]:
    """In input, checkpoint, result, error, message and dead letter."""
    ended, broken, waits = completed("c", SECRET), failed("f", SECRET), waiting("w", SECRET)
    waits.signal("other", {"why": SECRET})
    assert SECRET in ended.encoded_input and SECRET in (ended.encoded_output or "")
    assert SECRET in (broken.encoded_error or "")
    assert SECRET in (DeadLetter.objects.get().encoded_error or "")
    return [ended, broken, waits]


def test_without_it_no_page_holds_any_part_of_a_value(viewer: Client) -> None:
    executions = with_secret_everywhere()
    for url in (*LISTS, *map(page_of, executions)):
        assert "4111" not in viewer.get(url).content.decode(), url


def test_without_it_the_confirmation_holds_no_value_either() -> None:
    executions = with_secret_everywhere()
    client = sign_in("viewer", "retry_execution", "cancel_execution", name="boss")
    pages = [client.get(verb_of(execution, "retry")) for execution in executions]
    ticked = {"action": "retry_selected", ACTION_CHECKBOX_NAME: [str(one.pk) for one in executions]}
    pages.append(client.post(EXECUTIONS, ticked))
    pages.append(client.post(EXECUTIONS, {**ticked, "confirmed": "yes"}, follow=True))
    for page in pages:
        assert page.status_code == 200
        assert "4111" not in page.content.decode()


def test_without_it_a_value_shows_as_type_and_size(viewer: Client) -> None:
    ended, broken, waits = with_secret_everywhere()
    page = parse(viewer.get(page_of(ended)))
    assert "dict, 2 keys, " in page.text
    assert page.cells.count("str, 16 bytes") == 1  # the step's result
    assert "You may see its type and size only." in page.text

    page = parse(viewer.get(page_of(broken)))
    assert "CardRefused" in page.text, "the type of an error is no value"
    assert "Message: 22 characters. You may see its size only." in page.text
    assert "Traceback" not in page.text

    page = parse(viewer.get(page_of(waits)))
    assert "dict, 1 key, 24 bytes" in page.cells


def test_with_it_the_values_are_there() -> None:
    ended, broken, waits = with_secret_everywhere()
    client = sign_in("reader")
    assert f'"{SECRET}"' in parse(client.get(page_of(ended))).cells
    page = parse(client.get(page_of(broken)))
    assert page.text.count(f"refused {SECRET}") >= 2
    assert "Traceback (most recent call last)" in page.text
    assert json.dumps({"why": SECRET}) in parse(client.get(page_of(waits))).cells
    # Even so, lists hold none: they are seen over shoulders and in logs.
    for url in LISTS:
        assert "4111" not in client.get(url).content.decode()


@pytest.mark.parametrize(
    "lookup",
    [
        "encoded_input__contains",
        "encoded_output__contains",
        "encoded_error__startswith",
        "encoded_error__isnull",
        "seed",
        "lease_token",
        "tags__has_key",
        "checkpoints__encoded_output__contains",
        "messages__payload__contains",
        "key__startswith",
        "id__gt",
    ],
)
def test_no_column_can_be_asked_for_through_the_address(lookup: str, viewer: Client) -> None:
    completed("c", SECRET)
    for value in ("4111", "9999"):
        assert viewer.get(EXECUTIONS, {lookup: value}).status_code == 400
    assert viewer.get(DEAD_LETTERS, {lookup: "4111"}).status_code == 400


def test_the_search_does_not_look_into_values(viewer: Client) -> None:
    completed("c", SECRET)
    for term in (SECRET, "4111", "refused"):
        assert page_of(Execution.objects.get()) not in viewer.get(EXECUTIONS, {"q": term}).content.decode()


def test_secrets_stay_masked_whatever_the_permission(superuser: Client) -> None:
    with override_settings(DURABLE={"REDACT": ["*token*"]}):
        ended = completed("c", {"access_token": "s3cr3t", "amount": 5})
        waits = waiting("w")
        waits.signal("other", {"token": "s3cr3t"})
        broken = failed("f")
        overwrite(broken, encoded_error=encode({"type": "E", "message": "token=s3cr3t", "traceback": ""}, where="t"))
        for execution in (ended, waits, broken):
            page = parse(superuser.get(page_of(execution)))
            assert "s3cr3t" not in page.source
            assert "********" in page.text


def test_digits_are_exact(superuser: Client) -> None:
    value = {"id": 1970670598291982290, "n": 10**40, "f": 1e16, "tiny": 5e-324, "big": -(2**63) - 1}
    ended = completed("c", value)
    source = superuser.get(page_of(ended)).content.decode()
    for digits in ("1970670598291982290", str(10**40), "1e+16", "5e-324", "-9223372036854775809"):
        assert source.count(digits) >= 3, digits  # input, step, result
    assert Execution.objects.locate(ended.pk).output == value


def test_the_engines_own_words_are_no_values(viewer: Client) -> None:
    broken = failed("f", SECRET)
    words = encode({"type": "m.WorkerLost", "message": "worker lost: 3 crashes", "traceback": SECRET}, where="t")
    overwrite(broken, status="dead", encoded_error=words)
    page = parse(viewer.get(page_of(broken)))
    assert "worker lost: 3 crashes" in page.text
    assert SECRET not in page.text


def test_a_long_value_is_cut_and_says_so(superuser: Client) -> None:
    execution = completed("c", "é" * 100_000)
    response = superuser.get(page_of(execution))
    page = parse(response)
    assert len(response.content) < 400_000
    assert "Cut here: " in page.text
    # The step's own row does not even fetch it.
    assert "Too large for this page." in page.text
    assert Checkpoint.objects.get().encoded_output is not None


def test_a_long_message_shows_its_type_and_size(superuser: Client, viewer: Client) -> None:
    execution = waiting("w")
    execution.signal("big", {"rows": list(range(10_000))})
    size = len(Message.objects.get().payload)
    for client in (superuser, viewer):
        assert any(cell.startswith(f"dict, {size} bytes") for cell in parse(client.get(page_of(execution))).cells)
