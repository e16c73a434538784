"""``durable start``: by name, with plain JSON that becomes what the annotations say; its id is the data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from django_durable import Context, Execution, workflow
from django_durable.clock import read_now
from tests.calling import durable
from tests.driving import USING, drain

pytestmark = pytest.mark.django_db


@workflow("commands.invoice", version="1.9", queue="billing")
def invoice_before(ctx: Context, order_id: int) -> None: ...


@workflow("commands.invoice", version="1.10", queue="billing")
def invoice(ctx: Context, order_id: int, total: Decimal, due: datetime | None = None) -> dict[str, Any]:
    return {"order_id": order_id, "total": total, "due": due}


@workflow("commands.collect")
def collect(ctx: Context, first: int, /, *rest: int, **named: timedelta) -> list[Any]:
    return [first, list(rest), named]


INPUT = '{"order_id": 5, "total": "12.50", "due": "2026-12-01T10:00:00+01:00"}'


def test_the_id_is_the_only_line_on_stdout() -> None:
    called = durable("start", "commands.invoice", "--input", INPUT)

    assert called.code == 0
    assert called.err == ""
    assert Execution.objects.locate(UUID(called.out.removesuffix("\n"))).status == "pending"


def test_arguments_have_the_types_that_the_annotations_name() -> None:
    durable("start", "commands.invoice", "--input", INPUT)
    drain()

    execution = Execution.objects.get()
    assert execution.output == {
        "order_id": 5,
        "total": Decimal("12.50"),
        "due": datetime.fromisoformat("2026-12-01T10:00:00+01:00"),
    }


def test_the_newest_version_starts_unless_one_is_named() -> None:
    durable("start", "commands.invoice", "--input", INPUT)
    assert Execution.objects.get().version == "1.10"
    durable("start", "commands.invoice", "--workflow-version", "1.9", "--input", '{"order_id": 5}')

    assert set(Execution.objects.values_list("version", flat=True)) == {"1.10", "1.9"}


def test_positional_only_and_collected_parameters_are_passed_by_name() -> None:
    given = '{"first": 1, "rest": [2, 3], "named": {"pause": 60}}'
    assert durable("start", "commands.collect", "--input", given).code == 0
    drain()

    assert Execution.objects.get().output == [1, [2, 3], {"pause": timedelta(minutes=1)}]


def test_the_options_of_a_start_reach_the_execution() -> None:
    options = ["--key", "order-5", "--tenant", "acme", "--priority", "-2", "--queue", "slow"]
    called = durable("start", "commands.invoice", "--input", INPUT, *options, "--json")

    execution = Execution.objects.get()
    assert (execution.key, execution.tenant) == ("order-5", "acme")
    assert (execution.priority, execution.queue) == (-2, "slow")
    assert called.data == {
        "id": str(execution.pk),
        "is_new": True,
        "workflow": "commands.invoice",
        "version": "1.10",
        "key": "order-5",
        "status": "pending",
    }


def test_options_may_be_python_values() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    called = durable(
        "start", "commands.invoice", input={"order_id": 5, "total": "1"}, run_after=moment, priority=1, json=True
    )

    assert called.code == 0
    execution = Execution.objects.locate(called.data["id"])
    assert (execution.run_after, execution.priority) == (moment, 1)


def test_run_after_is_a_time_or_seconds_from_now() -> None:
    durable("start", "commands.invoice", "--input", INPUT, "--key", "a", "--run-after", "2030-01-01T12:00+02:00")
    durable("start", "commands.invoice", "--input", INPUT, "--key", "b", "--run-after", "3600")

    assert Execution.objects.get(key="a").run_after == datetime(2030, 1, 1, 10, tzinfo=UTC)
    later = Execution.objects.get(key="b").run_after
    assert later is not None
    assert timedelta(minutes=59) < later - read_now(USING) <= timedelta(hours=1)


def test_the_same_key_prints_the_first_id_and_says_so() -> None:
    first = durable("start", "commands.invoice", "--input", INPUT, "--key", "order-5")
    again = durable("start", "commands.invoice", "--input", INPUT, "--key", "order-5")

    assert (again.code, again.out) == (0, first.out)
    assert "has this key already; it is pending" in again.err
    assert Execution.objects.count() == 1


def test_the_same_key_with_another_input_is_a_conflict() -> None:
    durable("start", "commands.invoice", "--input", INPUT, "--key", "order-5")
    called = durable("start", "commands.invoice", "--input", '{"order_id": 6, "total": 1}', "--key", "order-5")

    assert (called.code, called.out) == (1, "")
    assert "another input" in called.error


def test_an_unknown_workflow_is_not_found_and_the_nearest_is_named() -> None:
    called = durable("start", "commands.invoic")

    assert called.code == 3
    assert "Did you mean 'commands.invoice'?" in called.error
    assert durable("start", "commands.invoice", "--workflow-version", "7").code == 3


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--input", "{"], "--input must be JSON"),
        (["--input", "[1]"], "--input must be a JSON object"),
        (["--input", '{"order_id": "five", "total": 1}'], "parameter 'order_id': expected an integer"),
        (["--input", '{"order": 5}'], "no parameter 'order'; it takes order_id, total, due"),
        (["--input", '{"order_id": 5}'], "missing a required argument: 'total'"),
        ([], "missing a required argument: 'order_id'"),
        (["--input", INPUT, "--run-after", "tomorrow"], "--run-after must be a time in ISO 8601"),
        (["--input", INPUT, "--run-after", "2026-13-01T00:00Z"], "--run-after must be a time in ISO 8601"),
        (["--input", INPUT, "--run-after", "2026-01-01T00:00"], "has no time zone; write 2026-01-01T00:00:00Z"),
        (["--input", INPUT, "--run-after", "nan"], "must be finite"),
        (["--input", INPUT, "--priority", "high"], "--priority must be a whole number, not 'high'"),
        (["--input", INPUT, "--priority", "3"], "priority must be an int from -2 to 2"),
        (["--input", INPUT, "--key", ""], "key must not be empty"),
        (["--input", INPUT, "--queue", "q" * 256], "queue has 256 characters"),
    ],
)
def test_a_bad_input_is_a_usage_error_that_names_it(options: list[str], told: str) -> None:
    called = durable("start", "commands.invoice", *options)

    assert called.code == 2
    assert told in called.error
    assert not Execution.objects.exists()


def test_a_bad_value_is_not_repeated_in_the_message() -> None:
    called = durable("start", "commands.invoice", "--input", '{"order_id": "4111111111111111", "total": 1}')

    assert called.code == 2
    assert "4111" not in called.error


def test_an_input_that_is_too_large_is_a_usage_error(settings: Any) -> None:
    settings.DURABLE = {**settings.DURABLE, "MAX_PAYLOAD_BYTES": 20}

    assert durable("start", "commands.invoice", "--input", INPUT).code == 2


def test_a_start_without_tenant_is_refused_where_the_project_says_so(settings: Any) -> None:
    settings.DURABLE = {**settings.DURABLE, "UNTENANTED": "refuse"}

    called = durable("start", "commands.invoice", "--input", INPUT)
    assert called.code == 1
    assert "without a tenant" in called.error
