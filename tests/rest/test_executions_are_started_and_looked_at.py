"""Start, list, detail: what a client needs first."""

from __future__ import annotations

import pytest

from django_durable import Execution
from tests.driving import drain
from tests.rest.flows import run
from tests.rest.visitors import EXECUTIONS, of, superuser

pytestmark = pytest.mark.django_db


def test_a_start_answers_with_the_address_and_runs_once_a_key() -> None:
    root = superuser()
    body = {"workflow": "rest.order", "input": {"amount": "12.50", "pause": 3}, "key": "o-1", "tags": {"vip": True}}
    first = root.post(EXECUTIONS, body)
    assert first.status_code == 201, first.content
    assert first["Location"].endswith(of(Execution.objects.get()))
    assert first.json()["status"] == "pending"
    again = root.post(EXECUTIONS, body)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    drain()
    detail = root.get(first["Location"]).json()
    assert detail["output"] == "Decimal('12.50') None datetime.timedelta(seconds=3)"
    assert detail["input"] == {"amount": "12.50", "pause": "P0DT00H00M03S"}
    assert detail["tags"] == {"vip": True}


def test_lists_are_paged_by_id_newest_first() -> None:
    root = superuser()
    ids = [str(run(value=number).pk) for number in range(5)]
    seen, address = [], f"{EXECUTIONS}?page_size=2"
    while address:
        page = root.get(address).json()
        seen += [row["id"] for row in page["results"]]
        address = page["next"]
    assert seen == ids[::-1]


def test_a_signal_wakes_what_waits_for_it() -> None:
    root, waiting = superuser(), run("wait")
    answer = root.post(of(waiting, "signal"), {"name": "go", "payload": {"a": 1}})
    assert answer.status_code == 200, answer.content
    drain()
    assert root.get(of(waiting)).json()["output"] == {"a": 1}
