"""However many rows there are, a page is read along an index: nothing is scanned, nothing is sorted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_durable.models import DispatchHint
from tests.admin.html import parse
from tests.admin.many import make_executions, make_hints, make_letters
from tests.admin.visitors import ACTIONS, DEAD_LETTERS, EXECUTIONS, HINTS, page_of, sign_in

pytestmark = pytest.mark.django_db

# Many enough that a planner prefers an index, with statistics that say so.
ROWS = 5_000


@pytest.fixture
def client() -> Client:
    client = sign_in("superuser")
    ids = make_executions(ROWS)
    failed = make_executions(ROWS // 10, error="{}")
    make_letters(failed, retried=ROWS // 20)
    make_hints(ids)
    make_hints(failed, state=DispatchHint.State.PARKED)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_durable_operatoraction (id, execution_id, verb, actor, at)"
                       " SELECT id, id, 'retry', 'anna', created_at FROM django_durable_execution")
        cursor.execute("ANALYZE")
    return client


def plans(client: Client, url: str) -> Iterator[tuple[str, str]]:
    """The database's plan for each query on our tables."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    for query in [query["sql"] for query in captured]:
        if "django_durable_" in query:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN {'QUERY PLAN ' if connection.vendor == 'sqlite' else ''}{query}".replace("%", "%%"), [])
                yield query, "\n".join(str(row[-1]) for row in cursor.fetchall())


def pages(client: Client, url: str) -> Iterator[str]:
    """The first page, the second, and the first one as seen from the second."""
    yield url
    for rel in ("next", "prev"):
        links = [link["href"] for link in parse(client.get(url)).all("a") if link.get("rel") == rel]
        if not links:
            return
        url = url.partition("?")[0] + links[0]
        yield url


@pytest.mark.parametrize(
    "url",
    [EXECUTIONS, f"{EXECUTIONS}?status__exact=failed", f"{EXECUTIONS}?status__exact=dead", DEAD_LETTERS, HINTS, f"{HINTS}?state=blocked", ACTIONS],
)
def test_x(url: str, client: Client) -> None:
    for page in pages(client, url):
        for query, plan in plans(client, page):
            print(page, "\n", query, "\n", plan, "\n")
