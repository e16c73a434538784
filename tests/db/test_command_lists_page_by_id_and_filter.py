"""``durable list``, ``dead-letters``, ``workflows``: newest first, a page at a time, never a count."""

from __future__ import annotations

from typing import Any

import pytest
from django.test.utils import CaptureQueriesContext

from django_durable import Context, Execution, workflow
from tests.calling import durable
from tests.driving import connection, drain

pytestmark = pytest.mark.django_db


@workflow("commands.order")
def order(ctx: Context, number: int = 0) -> None:
    ctx.wait_for_signal("go")


@workflow("commands.refuse", version="2", queue="other", timeout=60)
def refuse(ctx: Context, number: int = 0) -> None:
    raise ValueError(f"card 4111 refused {number}")


def keys(*options: Any, **more: Any) -> list[str | None]:
    called = durable("list", "--json", *options, **more)
    assert called.code == 0
    return [row["key"] for row in called.data]


def found(*options: Any, **more: Any) -> set[str | None]:
    return set(keys(*options, **more))


def make(count: int) -> list[Execution[Any]]:
    """In the order of their ids, which within a millisecond is not the order of their starts."""
    return sorted((order.using(key=f"k{number}").start(number) for number in range(count)), key=lambda one: one.pk)


def test_the_newest_come_first_and_a_page_says_where_the_next_begins() -> None:
    made = make(5)

    first = durable("list", "--limit", "2")
    lines = first.out.splitlines()
    assert [line.split()[0] for line in lines] == ["ID", str(made[4].pk), str(made[3].pk)]
    assert first.err == f"there are more: --after {made[3].pk}\n"

    assert keys("--limit", "2", "--after", made[3].pk) == [made[2].key, made[1].key]
    last = durable("list", "--limit", "2", "--after", made[1].pk, "--json")
    assert ([row["key"] for row in last.data], last.err) == ([made[0].key], "")


def test_a_full_last_page_promises_no_other() -> None:
    make(2)
    assert durable("list", "--limit", "2").err == ""


def test_every_filter_has_to_hold() -> None:
    order.using(key="a", tenant="acme").start()
    order.using(key="b", queue="slow").start()
    refuse.using(key="c").start()
    refuse.using(key="d").start()
    drain()

    assert found() == {"d", "c", "b", "a"}
    assert found("--status", "failed") == {"d", "c"}
    assert found("--status", "failed,waiting", "--workflow", "commands.order") == {"b", "a"}
    assert found("--tenant", "acme") == {"a"}
    assert found("--queue", "slow") == {"b"}
    assert found("--key", "c") == {"c"}
    assert found("--key", "c", "--status", "waiting") == set()
    assert len(found(status=["failed"], workflow="commands.refuse", limit=1)) == 1


def test_tags_are_found_as_text_number_or_bool() -> None:
    order.using(key="a", tags={"region": "eu", "size": 5, "vip": True}).start()
    order.using(key="b", tags={"region": "us", "size": "5", "vip": False}).start()
    order.using(key="c", tags={"region": "true"}).start()

    assert found("--tag", "region=eu") == {"a"}
    assert found("--tag", "size=5") == {"b", "a"}
    assert found("--tag", "vip=true") == {"a"}
    assert found("--tag", "region=true") == {"c"}
    assert found("--tag", "size=5", "--tag", "vip=false") == {"b"}
    assert found("--tag", "missing=1") == set()
    assert found(tag={"vip": True}) == {"a"}


def test_a_tag_name_is_a_name_and_no_lookup() -> None:
    order.using(key="a", tags={"region": "eu"}).start()

    assert found("--tag", "region__startswith=e") == set()
    assert found("--tag", 'region") OR 1=1 --=x') == set()


def test_a_wrong_status_names_the_nearest() -> None:
    assert "did you mean failed" in durable("list", "--status", "faild").error


def test_a_page_is_one_query_that_reads_no_large_column() -> None:
    make(3)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        durable("list", "--status", "pending")
    (query,) = [query["sql"] for query in queries if "FROM" in query["sql"]]
    assert "encoded_" not in query
    assert "COUNT" not in query


def test_control_characters_of_a_key_do_not_reach_the_terminal() -> None:
    order.using(key="a\x1b[2J\nb").start()

    called = durable("list")
    assert "a\\x1b[2J\\nb" in called.out
    assert "\x1b" not in called.out
    assert len(called.out.splitlines()) == 2


def test_dead_letters_are_listed_with_the_type_of_the_error_and_not_its_text() -> None:
    for number in range(3):
        refuse.using(key=f"k{number}").start(number)
    drain()
    Execution.objects.get(key="k1").retry(actor="anna")

    called = durable("dead-letters", "--json")
    assert [row["retried_by"] for row in called.data] == ["", "anna", ""]
    assert {row["status"] for row in called.data} == {"failed"}
    assert {row["error"]["type"] for row in called.data} == {"builtins.ValueError"}
    assert "4111" not in called.out
    assert "card 4111 refused" in durable("dead-letters", "--json", "--payloads").out

    text = durable("dead-letters", "--open", "--limit", "1")
    assert str(Execution.objects.get(key="k2").pk) in text.out
    assert "builtins.ValueError" in text.out
    after = text.err.rpartition(" ")[2].strip()
    rest = durable("dead-letters", "--open", "--after", after, "--json")
    assert [row["execution_id"] for row in rest.data] == [str(Execution.objects.get(key="k0").pk)]


def test_workflows_shows_every_version_and_the_queue_in_force() -> None:
    rows = {(row["name"], row["version"]): row for row in durable("workflows", "--json").data}

    assert rows["commands.order", "1"]["queue"] == "durable"
    assert rows["commands.refuse", "2"] == {
        "name": "commands.refuse",
        "version": "2",
        "newest": True,
        "queue": "other",
        "priority": 0,
        "timeout": 60.0,
        "max_recoveries": None,
        "pin": False,
        "rest": False,
        "parameters": ["number"],
    }
    (line,) = [line for line in durable("workflows").out.splitlines() if line.startswith("commands.refuse")]
    assert line.split() == ["commands.refuse", "2", "yes", "other", "0", "60.0", "number"]
