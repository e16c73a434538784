"""Polling: an unchanged answer is 304; lists cost the same for any number of rows and read no large column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from tests.driving import USING
from tests.rest.flows import run
from tests.rest.visitors import BASE, EXECUTIONS, of, superuser

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("parts", [(), ("result",), ("values", "pro/gress")])
def test_an_etag_saves_the_answer(parts: tuple[str, ...]) -> None:
    execution, root = run("publish"), superuser()
    if parts == ("result",):
        execution.signal("go")
        from tests.driving import drain

        drain()
    first = root.get(of(execution, *parts))
    assert first.status_code == 200
    assert first["Cache-Control"] == "private, no-cache"
    for known in (first["ETag"], f"W/{first['ETag']}", f'"other", {first["ETag"]}', "*"):
        again = root.get(of(execution, *parts), headers={"If-None-Match": known})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert root.get(of(execution, *parts), headers={"If-None-Match": '"other"'}).status_code == 200


def test_an_etag_changes_with_the_execution_and_with_what_one_may_see() -> None:
    execution, root = run("wait", Decimal(1)), superuser()
    first = root.get(of(execution))["ETag"]
    execution.pause(actor="eve")
    assert root.get(of(execution), headers={"If-None-Match": first}).status_code == 200
    assert root.get(f"{of(execution)}?values=tagged")["ETag"] != root.get(of(execution))["ETag"]


LISTS = {
    "executions/": 1,
    "executions/?status=failed&workflow=rest.job": 1,
    "dead-letters/": 1,
    "approvals/": 1,
    "hints/": 1,
}


@pytest.mark.parametrize("address", LISTS)
def test_a_list_takes_one_query_whatever_it_holds(address: str) -> None:
    root = superuser()
    root.get(BASE + address)  # the user's permissions, the session
    counts = []
    for more in (1, 4):
        for number in range(more):
            run("fail" if number % 2 else "ask", number)
        with CaptureQueriesContext(connections[USING]) as seen:
            assert root.get(BASE + address).status_code == 200
        own = [one["sql"] for one in seen if "django_durable_" in one["sql"]]
        counts.append(len(own))
        assert not any(
            "encoded_input" in sql or "encoded_output" in sql or ("encoded_error" in sql and "deadletter" not in sql)
            for sql in own
        )
        assert not any("COUNT(" in sql for sql in own)
    assert counts == [LISTS[address]] * 2


def test_one_execution_takes_the_same_for_any_length(django_assert_max_num_queries: Any) -> None:
    execution, root = run("publish"), superuser()
    root.get(EXECUTIONS)
    for address, most in ((of(execution), 2), (of(execution, "history"), 2), (of(execution, "children"), 2)):
        with CaptureQueriesContext(connections[USING]) as seen:
            assert root.get(address).status_code == 200
        own = [one["sql"] for one in seen if "django_durable_" in one["sql"]]
        assert len(own) <= most, own
