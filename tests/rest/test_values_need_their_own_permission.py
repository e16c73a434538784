"""Without ``view_payload`` a value is its type and size; with it plain JSON, or tagged with its types."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from django_durable import Execution
from tests.driving import drain
from tests.rest.flows import order, run
from tests.rest.visitors import BASE, CODENAMES, client_of, of, superuser, user_with

pytestmark = pytest.mark.django_db

SECRET = "4111-1111"


def clerk() -> Any:
    """Everything but values."""
    return client_of(user_with(*(set(CODENAMES) - {"view_payload"}), name="clerk"))


def answers(client: Any, execution: Execution[Any]) -> dict[str, Any]:
    paths = {
        "detail": of(execution),
        "history": of(execution, "history"),
        "result": of(execution, "result"),
        "value": of(execution, "values", "pro/gress"),
        "list": f"{BASE}executions/",
        "letters": f"{BASE}dead-letters/",
        "approvals": f"{BASE}approvals/",
    }
    found = {name: client.get(path) for name, path in paths.items()}
    return {name: answer.json() for name, answer in found.items() if answer.status_code in (200, 202)}


@pytest.mark.parametrize("what", ["fail", "ask", "publish", ""])
def test_nothing_of_a_value_is_shown(what: str) -> None:
    execution = run(what, SECRET)
    shown = answers(clerk(), execution)
    assert SECRET not in json.dumps(shown)
    assert "spend?" not in json.dumps(shown)
    assert shown["detail"]["input"].startswith("dict, 2 keys")
    if what == "fail":
        assert shown["detail"]["error"]["type"] == "tests.rest.flows.CardRefused"
        assert shown["detail"]["error"]["message"].startswith("str, ")
    whole = answers(superuser(), execution)
    assert SECRET in json.dumps(whole)


def test_types_are_kept_where_they_are_asked_for() -> None:
    execution = order.start(Decimal("1.50"), datetime(2030, 1, 1, tzinfo=UTC))
    drain()
    root = superuser()
    assert root.get(of(execution)).json()["input"]["amount"] == "1.50"
    tagged = root.get(f"{of(execution)}?values=tagged").json()["input"]
    assert tagged["amount"] == {"$dec": "1.50"} or "1.50" in json.dumps(tagged["amount"])
    assert isinstance(tagged["amount"], dict)
    assert root.get(f"{of(execution)}?values=raw").status_code == 400
    assert clerk().get(f"{of(execution)}?values=tagged").json()["input"].startswith("dict, ")


@pytest.mark.parametrize("value", ["\ud800", "\x00", "<script>", 2**70, "9" * 5000])
def test_unusual_values_are_shown_and_break_nothing(value: Any) -> None:
    execution = run("", value)
    root = superuser()
    for form in ("plain", "tagged"):
        assert root.get(f"{of(execution)}?values={form}").status_code == 200
        assert root.get(f"{of(execution, 'history')}?values={form}").status_code == 200


def test_secrets_are_masked(settings: Any) -> None:
    settings.DURABLE = {"REDACT": ["card*"]}
    execution = run("publish", {"card_number": SECRET})
    root = superuser()
    for form in ("plain", "tagged"):
        assert SECRET not in root.get(f"{of(execution)}?values={form}").content.decode()


def test_an_unreadable_row_breaks_no_answer() -> None:
    from django.db.models import QuerySet

    execution = run(value=1)
    QuerySet(Execution).filter(pk=execution.pk).update(encoded_input="{broken", encoded_output="{broken")
    root = superuser()
    assert root.get(f"{BASE}executions/").status_code == 200
    for form in ("plain", "tagged"):
        answer = root.get(f"{of(execution)}?values={form}")
        assert answer.status_code == 200
        assert "unreadable" in answer.json()["output"]


def test_a_reply_needs_it_too() -> None:
    from django_durable.operators.values import Values
    from django_durable.payloads import encode

    assert Values(payloads=False).value(encode(SECRET, where="x")) == "str, 11 bytes"
