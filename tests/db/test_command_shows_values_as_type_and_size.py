"""``durable show`` and ``history``: what happened, with values as type and size unless ``--payloads``."""

from __future__ import annotations

from typing import Any

import pytest
from django.test.utils import CaptureQueriesContext

from django_durable import Context, Execution, Retry, StepFailed, step, workflow
from django_durable.authoring import registry
from django_durable.models import Checkpoint
from tests.calling import Called, durable
from tests.driving import claim, connection, drain, lapse_leases

pytestmark = pytest.mark.django_db

SECRET = "4111-1111"


@step
def charge(card: str, password: str = "hunter22") -> dict[str, str]:
    return {"card": card, "password": password}


@step(retry=Retry(max_attempts=2, initial=0))
def refuse(card: str) -> None:
    raise ValueError(f"card {card} refused\nfor good")


@workflow("commands.pay")
def pay(ctx: Context, card: str) -> dict[str, str]:
    result = ctx.step(charge, card)
    try:
        ctx.step(refuse, card)
    except StepFailed:
        ctx.log.info("refused")
    ctx.wait_for_signal("reviewed")
    return result


@workflow("commands.lose")
def lose(ctx: Context, card: str) -> None:
    ctx.step(refuse, card)


def paid() -> Execution[Any]:
    execution = pay.using(key="order-5", tags={"region": "eu"}).start(SECRET)
    drain()
    return execution


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("verb", ["show", "history"])
def test_no_value_is_shown_without_payloads(verb: str, options: list[str]) -> None:
    called = durable(verb, paid().pk, *options)

    assert called.code == 0
    assert SECRET not in called.out
    assert "hunter22" not in called.out
    assert "for good" not in called.out


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("verb", ["show", "history"])
def test_values_are_shown_with_payloads_and_secrets_masked(verb: str, options: list[str], settings: Any) -> None:
    settings.DURABLE = {**settings.DURABLE, "REDACT": ["pass*"]}

    called = durable(verb, paid().pk, "--payloads", *options)
    assert SECRET in called.out
    assert "for good" in called.out
    assert "hunter22" not in called.out
    assert "********" in called.out


def test_history_has_the_keys_of_the_python_call() -> None:
    execution = paid()

    entries = durable("history", execution.pk, "--json", "--payloads").data
    assert [list(entry) for entry in entries] == [list(entry) for entry in execution.history()]
    assert [entry["kind"] for entry in entries] == ["step", "step", "signal"]
    assert entries[0]["output"] == {"card": SECRET, "password": "hunter22"}
    assert (entries[1]["status"], entries[1]["attempts"]) == ("failed", 2)
    assert entries[1]["error"]["type"] == "builtins.ValueError"


def test_history_shows_type_and_size() -> None:
    entries = durable("history", paid().pk, "--json").data

    assert entries[0]["output"].startswith("dict, 2 keys, ")
    assert entries[1]["error"]["type"] == "builtins.ValueError"
    assert entries[1]["error"]["message"] == "str, 31 characters"
    assert entries[2]["output"] is None


def test_show_tells_the_row_and_the_timeline() -> None:
    execution = paid()

    found = durable("show", execution.pk, "--json").data
    assert (found["id"], found["key"], found["status"]) == (str(execution.pk), "order-5", "waiting")
    assert found["tags"] == {"region": "eu"}
    assert found["awaiting"] == ["signal:reviewed"]
    assert found["input"].startswith("dict, 1 key, ")
    assert [(row["position"], row["status"], row["attempts"]) for row in found["checkpoints"]] == [
        (0, "completed", 1),
        (1, "failed", 2),
        (2, "pending", 0),
    ]
    assert found["checkpoints"][0]["duration"] >= 0
    assert found["checkpoints"][2]["duration"] is None
    assert (found["dead_letter"], found["takeovers"], found["notes"]) == (None, [], [])

    text = durable("show", execution.pk).out
    assert "timeline" in text
    assert "take-overs" not in text
    assert "operators" not in text


def test_show_tells_take_overs_the_open_dead_letter_and_who_did_what() -> None:
    execution = lose.start(SECRET)
    claim()
    lapse_leases()
    drain()
    durable("retry", execution.pk, "--actor", "anna", "--reason", "the bank was down")
    drain()

    found = durable("show", execution.pk, "--json").data
    assert found["status"] == "failed"
    assert [entry["reason"] for entry in found["takeovers"]] == ["lease expired"]
    assert (found["dead_letter"]["generation"], found["dead_letter"]["status"]) == (2, "failed")
    assert [(note["verb"], note["actor"], note["reason"]) for note in found["notes"]] == [
        ("retry", "anna", "the bank was down")
    ]
    assert found["error"]["type"] == "builtins.ValueError"
    assert found["error"]["message"] == "str, 31 characters"

    text = durable("show", execution.pk).out
    for part in ("take-overs", "lease expired", "open dead letter", "the bank was down", "builtins.ValueError"):
        assert part in text
    shown = durable("show", execution.pk, "--payloads").out
    assert "card 4111-1111 refused\\nfor good" in shown
    assert "  Traceback" in shown


def test_the_reason_of_a_block_is_shown_since_it_carries_no_payload() -> None:
    execution = paid()
    execution.signal("reviewed")
    registry.forget(pay)
    try:
        durable("tick")
        found = durable("show", execution.pk, "--json").data
    finally:
        registry.add_workflow(pay)

    assert found["status"] == "blocked"
    assert "workflow 'commands.pay' version '1' is not registered here" in found["error"]["message"]


def test_one_value_that_cannot_be_read_breaks_nothing_else() -> None:
    execution = paid()
    Checkpoint.objects.filter(position=0).update(encoded_output='{"$type:gone": 1}')

    for verb, options in [("show", []), ("history", []), ("show", ["--payloads"]), ("history", ["--payloads"])]:
        assert durable(verb, execution.pk, *options).code == 0
    entries = durable("history", execution.pk, "--json", "--payloads").data
    assert entries[0]["output"].startswith("<gone, 17 bytes: no value type 'gone' is registered")
    assert len(entries) == 3


def queries_of(call: list[Any]) -> tuple[int, Called]:
    with CaptureQueriesContext(connection) as queries:
        called = durable(*call)
    return len(queries), called


@step
def nothing(number: int) -> int:
    return number


@workflow("commands.long")
def long(ctx: Context, length: int) -> None:
    for number in range(length):
        ctx.step(nothing, number)


@pytest.mark.parametrize("verb", ["show", "history"])
def test_the_number_of_queries_does_not_depend_on_the_length(verb: str) -> None:
    short, lengthy = long.start(1), long.start(40)
    drain()

    few, _called = queries_of([verb, short.pk])
    many, called = queries_of([verb, lengthy.pk])
    assert few == many <= 5
    assert called.out.count("tests.db.test_command_shows_values_as_type_and_size.nothing") == 40


def test_show_reads_no_output_that_it_does_not_show() -> None:
    execution = long.start(2)
    drain()

    with CaptureQueriesContext(connection) as queries:
        durable("show", execution.pk)
    (timeline,) = [q["sql"] for q in queries if "django_durable_checkpoint" in q["sql"]]
    assert "encoded_output" not in timeline
