"""However many rows there are, a page is read along an index: no table is scanned, none is sorted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_durable.ids import time_ordered_id
from django_durable.models import DispatchHint, Execution
from tests.admin.html import parse
from tests.admin.many import make_checkpoints, make_executions, make_hints, make_letters
from tests.admin.visitors import ACTIONS, DEAD_LETTERS, EXECUTIONS, HINTS, page_of, sign_in

pytestmark = pytest.mark.django_db

ROWS = 4_000
# A page and one row, from two places at most, and a few that a coarser key lets through.
TOUCHED = 250
PAGES = [
    EXECUTIONS,
    f"{EXECUTIONS}?status__exact=failed",
    f"{EXECUTIONS}?status__exact=dead",
    DEAD_LETTERS,
    f"{DEAD_LETTERS}?retried=no",
    f"{DEAD_LETTERS}?retried=yes",
    HINTS,
    f"{HINTS}?state=live",
    f"{HINTS}?state=blocked",
    ACTIONS,
]


@pytest.fixture
def client() -> Client:
    """Somebody who looks at tables of many rows, of which the database knows that they are many."""
    client = sign_in("superuser")
    ids = make_executions(ROWS // 2) + make_executions(ROWS // 8, error="{}")
    strangers = [time_ordered_id() for _ in range(ROWS)]
    # The open ones are the oldest: going through all letters from the newest on would find them last.
    make_letters(strangers)
    make_letters([uuid4() for _ in strangers], retried=ROWS)
    make_hints(strangers)
    make_hints([uuid4() for _ in strangers], state=DispatchHint.State.PARKED)
    make_checkpoints(ids[0], ROWS)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_durable_operatoraction (id, execution_id, verb, actor, at)"
            " SELECT id, id, 'retry', 'anna', created_at FROM django_durable_execution"
        )
        cursor.execute("ANALYZE")
    return client


def pages(client: Client, url: str) -> Iterator[str]:
    """The first pages, and the way back from the last of them."""
    yield url
    for rel in ("next", "next", "next", "prev"):
        links = [link["href"] for link in parse(client.get(url)).all("a") if link.get("rel") == rel]
        if not links:
            return
        url = url.partition("?")[0] + links[0].partition("#")[0]
        yield url


def page_queries(client: Client, url: str) -> list[str]:
    """The queries that read a page of rows."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return [query["sql"] for query in captured if re.search(r"LIMIT (101|201|\d{1,3})$", query["sql"])]


def scans(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from scans(part)


def rows_touched(query: str) -> int:
    """How many rows PostgreSQL has looked at for one query."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}".replace("%", "%%"), [])
        found = cursor.fetchone()[0]
    (plan,) = json.loads(found) if isinstance(found, str) else found
    nodes = [node for node in scans(plan["Plan"]) if "Scan" in node["Node Type"]]
    return sum(int(node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) for node in nodes)


def ways(query: str) -> list[str]:
    """SQLite's plan for one query, a line each."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {query}".replace("%", "%%"), [])
        return [row[-1] for row in cursor.fetchall()]


def check(query: str, url: str) -> None:
    if connection.vendor == "postgresql":
        assert rows_touched(query) <= TOUCHED, (url, query)
        return
    for way in ways(query):
        assert way != "USE TEMP B-TREE FOR ORDER BY", (url, query)
        # A table's own order is that of its integer key.
        assert not re.fullmatch(r"SCAN \w+", way) or way == "SCAN django_durable_deadletter", (url, query)


def test_a_page_touches_the_rows_that_it_shows(client: Client) -> None:
    for url in PAGES:
        for page in pages(client, url):
            queries = page_queries(client, page)
            assert queries
            for query in queries:
                check(query, page)
    url = page_of(Execution.objects.order_by("id")[0])
    for page in (*pages(client, url), f"{url}?last=1"):
        (query,) = [query for query in page_queries(client, page) if "django_durable_checkpoint" in query]
        check(query, page)
    would_see_a_scan_and_a_sort()


def would_see_a_scan_and_a_sort() -> None:
    """The control, on the same rows."""
    for condition in ("WHERE worker = 'x'", "ORDER BY worker"):
        query = f"SELECT * FROM {Execution._meta.db_table} {condition} LIMIT 101"
        with pytest.raises(AssertionError):
            check(query, "")
