"""Lists: a page by its key, no count, no scan over an offset, no large column, a constant number of queries."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_durable.models import DeadLetter, DispatchHint, Execution, OperatorAction
from tests.admin.flows import waiting
from tests.admin.html import parse
from tests.admin.many import (
    ERROR,
    PAYLOAD,
    make_checkpoints,
    make_everything,
    make_executions,
    make_hints,
    make_letters,
    make_schedules,
)
from tests.admin.visitors import ACTIONS, DEAD_LETTERS, EXECUTIONS, HINTS, LISTS, page_of, sign_in

pytestmark = pytest.mark.django_db

PAGE = 100
MOST_QUERIES = 10


def queries_of(client: Client, url: str, **parameters: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url, parameters).status_code == 200
    return [query["sql"] for query in captured]


def ids_on(client: Client, url: str) -> list[str]:
    """The executions that a list shows, in order."""
    hrefs = [href.partition("?")[0] for href in parse(client.get(url)).links()]
    return [href.split("/")[-3] for href in hrefs if href.endswith("/change/")]


def neighbour(client: Client, url: str, rel: str) -> str | None:
    links = [link for link in parse(client.get(url)).all("a") if link.get("rel") == rel]
    return url.partition("?")[0] + links[0]["href"] if links else None


def walk(client: Client, url: str) -> list[list[str]]:
    """Every page from the first to the last, and the same pages on the way back."""
    pages, here = [ids_on(client, url)], url
    while (following := neighbour(client, here, "next")) is not None:
        here = following
        pages.append(ids_on(client, here))
    back = [ids_on(client, here)]
    while (previous := neighbour(client, here, "prev")) is not None:
        here = previous
        back.append(ids_on(client, here))
    assert back[::-1] == pages
    return pages


def texts(ids: list[UUID]) -> list[str]:
    return [str(id) for id in ids]


# -- what a page costs -----------------------------------------------------------------------------------------


def make_rows(count: int) -> None:
    ids = make_executions(count, error=ERROR)
    make_letters(ids)
    make_hints(ids)
    make_schedules(ids)
    for id in ids:
        make_checkpoints(id, 20)
        OperatorAction.objects.create(execution_id=id, verb="retry", actor="anna", at=timezone.now())


@pytest.mark.parametrize("url", LISTS)
def test_a_hundred_rows_cost_the_queries_of_ten(url: str) -> None:
    client = sign_in("viewer")
    make_rows(10)
    ten = queries_of(client, url)
    make_rows(90)
    hundred = queries_of(client, url)
    assert len(ids_on(client, url)) == PAGE
    assert len(ten) == len(hundred) <= MOST_QUERIES, "\n".join(hundred)


@pytest.mark.parametrize("url", LISTS)
def test_no_query_counts_and_none_reads_a_stored_value(url: str) -> None:
    client = sign_in("superuser")
    ids = make_executions(150, error=ERROR)
    make_letters(ids, retried=20)
    make_hints(ids)
    for query in queries_of(client, url):
        assert "COUNT(" not in query.upper()
        assert "OFFSET" not in query.upper()
        for column in ("encoded_input", "encoded_output", "failures"):
            assert column not in query or "dispatchhint" in query, query
        # Of an error only the beginning, for its type, and only of the rows on the page.
        assert "encoded_error" not in query or "300)" in query, query


def test_a_page_of_large_rows_is_small_and_takes_little_memory() -> None:
    client = sign_in("superuser")
    for _ in range(10):
        make_executions(10, payload=PAYLOAD, error=ERROR)
    client.get(EXECUTIONS)
    tracemalloc.start()
    try:
        response = client.get(EXECUTIONS)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(response.content) < 300_000
    assert peak < 10_000_000
    assert parse(response).cells.count("ValueError") == 100


def test_the_page_of_an_execution_costs_the_same_whatever_it_holds() -> None:
    client = sign_in("viewer")
    light, loaded = make_executions(2, payload="{}", error=ERROR)
    for id in (light, loaded):
        make_letters([id])
        make_hints([id])
    make_checkpoints(light, 1)
    make_checkpoints(loaded, 1_000)
    make_everything([loaded])
    make_executions(120, parent_id=loaded)
    one, other = (queries_of(client, page_of(Execution(id=id))) for id in (light, loaded))
    assert len(one) == len(other) <= 15, "\n".join(other)
    assert not [query for query in other if "COUNT(" in query.upper()]


# -- pages -----------------------------------------------------------------------------------------------------


def test_executions_are_paged_from_the_newest_to_the_oldest_and_back(superuser: Client) -> None:
    ids = make_executions(2 * PAGE + 30)
    pages = walk(superuser, EXECUTIONS)
    assert [len(page) for page in pages] == [PAGE, PAGE, 30]
    assert [id for page in pages for id in page] == texts(ids[::-1])


def test_a_page_begins_behind_the_last_row_whatever_has_come_since(superuser: Client) -> None:
    old = make_executions(PAGE + 10)
    following = neighbour(superuser, EXECUTIONS, "next")
    assert following is not None
    make_executions(5)
    assert ids_on(superuser, following) == texts(old[:10][::-1])


def test_a_full_last_page_leads_nowhere(superuser: Client) -> None:
    make_executions(PAGE)
    assert neighbour(superuser, EXECUTIONS, "next") is None
    assert neighbour(superuser, EXECUTIONS, "prev") is None


def test_an_empty_list_says_so(superuser: Client) -> None:
    for url in LISTS:
        assert "No rows here." in parse(superuser.get(url)).text


def test_dead_letters_show_the_open_ones_first_on_whatever_page(superuser: Client) -> None:
    ids = make_executions(2 * PAGE + 50, error="{}")
    make_letters(ids, retried=PAGE + 20)
    opened, retried = ids[PAGE + 20 :], ids[: PAGE + 20]
    pages = walk(superuser, DEAD_LETTERS)
    assert [id for page in pages for id in page] == texts([*opened[::-1], *retried[::-1]])

    assert [id for page in walk(superuser, f"{DEAD_LETTERS}?retried=no") for id in page] == texts(opened[::-1])
    assert [id for page in walk(superuser, f"{DEAD_LETTERS}?retried=yes") for id in page] == texts(retried[::-1])


def test_hints_show_parked_and_blocked_ones_first_then_by_due_time(superuser: Client) -> None:
    live, blocked, parked = make_executions(PAGE + 60), make_executions(30), make_executions(30)
    make_hints(live)
    make_hints(blocked, state=DispatchHint.State.BLOCKED)
    make_hints(parked, state=DispatchHint.State.PARKED)
    shown = [id for page in walk(superuser, HINTS) for id in page]
    assert (set(shown[:30]), set(shown[30:60]), set(shown[60:])) == tuple(
        map(set, map(texts, (parked, blocked, live)))
    )
    assert len(shown) == len(set(shown)) == PAGE + 120
    due = dict(DispatchHint.objects.values_list("execution_id", "due_at"))
    times = [due[UUID(id)] for id in shown[60:]]
    assert times == sorted(times)
    assert ids_on(superuser, f"{HINTS}?state=parked") == shown[:30]


def test_operators_actions_are_paged_newest_first_and_found_by_execution(superuser: Client) -> None:
    execution = waiting("a")
    for number in range(3):
        execution.pause(actor=f"actor-{number}")
        execution.resume(actor=f"actor-{number}")
    execution.cancel(actor="last")
    waiting("b").cancel(actor="other")
    page = parse(superuser.get(ACTIONS, {"q": str(execution.pk)}))
    assert [cell for cell in page.cells if cell.startswith(("actor-", "last", "other"))] == [
        "last",
        *[f"actor-{number}" for number in (2, 2, 1, 1, 0, 0)],
    ]
    assert "last" not in parse(superuser.get(ACTIONS, {"q": "last"})).cells


# -- filters and search ----------------------------------------------------------------------------------------


@pytest.fixture
def various() -> dict[str, list[str]]:
    return {
        "waiting": texts(make_executions(3, status="waiting", queue="slow")),
        "failed": texts(make_executions(2, error=ERROR, workflow="admin.other")),
        "dead": texts(make_executions(1, status="dead", queue="slow", workflow="admin.other")),
    }


@pytest.mark.parametrize(
    "parameters, names",
    [
        ("status__exact=waiting", ["waiting"]),
        ("workflow=admin.other", ["dead", "failed"]),
        ("queue=slow", ["dead", "waiting"]),
        ("queue=slow&workflow=admin.other", ["dead"]),
        ("status__exact=hibernating", []),
        ("workflow=admin.oth", []),
    ],
)
def test_filters_hold_together(
    parameters: str, names: list[str], various: dict[str, list[str]], superuser: Client
) -> None:
    wanted = sorted((id for name in names for id in various[name]), reverse=True)
    assert ids_on(superuser, f"{EXECUTIONS}?{parameters}") == wanted


def test_a_filter_goes_with_the_pages_and_a_page_with_no_filter(superuser: Client) -> None:
    make_executions(PAGE + 5, workflow="admin.other")
    make_executions(PAGE + 5)
    first = f"{EXECUTIONS}?workflow=admin.many"
    following = neighbour(superuser, first, "next")
    assert following is not None
    assert len(ids_on(superuser, following)) == 5
    page = parse(superuser.get(following))
    assert not [link for link in page.links() if "status__exact" in link and "after" in link]
    assert "after" not in dict(page.fields()), "a search begins at the first page"


def test_the_workflows_and_queues_to_choose_from_cost_no_query(superuser: Client) -> None:
    before = queries_of(superuser, EXECUTIONS)
    make_executions(3, workflow="unknown.here", queue="nowhere")
    page = parse(superuser.get(EXECUTIONS))
    assert "?workflow=admin.job" in page.links()
    assert "?queue=durable" in page.links()
    assert "?workflow=unknown.here" not in page.links()
    assert "unknown.here" in parse(superuser.get(EXECUTIONS, {"workflow": "unknown.here"})).cells
    assert not [query for query in before if "DISTINCT" in query.upper()]


def test_the_search_takes_a_whole_id_or_a_whole_key(superuser: Client) -> None:
    first, second, _third = make_executions(3)
    assert ids_on(superuser, f"{EXECUTIONS}?q={first}") == [str(first)]
    assert ids_on(superuser, f"{EXECUTIONS}?q={first.hex.upper()}") == [str(first)]
    assert ids_on(superuser, f"{EXECUTIONS}?q=key-1") == [str(second)]
    assert ids_on(superuser, f"{EXECUTIONS}?q=key-") == []
    # A key may look like an id.
    named = waiting(str(first))
    assert ids_on(superuser, f"{EXECUTIONS}?q={first}") == [str(named.pk), str(first)]


# -- addresses that no page has given out ----------------------------------------------------------------------

CURSORS = [
    "x",
    "1",
    "[]",
    "[0]",
    '[9,"x"]',
    '[-1,"x"]',
    '[0,"x"]',
    "[0,5]",
    "[0,null]",
    '[true,"x"]',
    '[0,"\\u0000"]',
    '[0,"99999999999999999999"]',
    '[0,"a","b","c","d"]',
    '[0,"durable","99999999999999999999","2020-01-01","x"]',
    "[" * 5000,
    '{"a":1}',
]


@pytest.mark.parametrize("url", LISTS)
@pytest.mark.parametrize("name", ["after", "before"])
def test_a_made_up_place_leads_to_the_first_page(url: str, name: str, superuser: Client) -> None:
    ids = make_executions(2)
    make_letters(ids)
    make_hints(ids)
    for text in CURSORS:
        response = superuser.get(url, {name: text})
        assert (response.status_code, response["Location"]) == (302, f"{url}?e=1"), text
    assert superuser.get(f"{url}?e=1").status_code == 200


@pytest.mark.parametrize("parameter", ["q", "workflow", "queue", "status__exact"])
def test_a_nul_character_is_no_server_error(parameter: str, superuser: Client) -> None:
    make_executions(1)
    response: Any = superuser.get(EXECUTIONS, {parameter: "a\x00b"}, follow=True)
    assert response.status_code == 200


def test_pages_that_django_would_count_for_are_not_there(superuser: Client) -> None:
    make_executions(PAGE + 1)
    captured = queries_of(superuser, EXECUTIONS, p="1", all="", o="1.-2", _facets="1")
    assert not [query for query in captured if "COUNT(" in query.upper() or "OFFSET" in query.upper()]
    assert len(ids_on(superuser, f"{EXECUTIONS}?p=1&all=&o=1.-2")) == PAGE


def test_letters_are_found_by_how_the_run_ended_and_by_workflow(superuser: Client) -> None:
    ids = make_executions(3, error="{}")
    make_letters(ids)
    DeadLetter.objects.filter(execution_id=ids[0]).update(status="dead")
    DeadLetter.objects.filter(execution_id=ids[1]).update(workflow="admin.other")
    find: Callable[[str], list[str]] = lambda query: ids_on(superuser, f"{DEAD_LETTERS}?{query}")  # noqa: E731
    assert find("status=dead") == [str(ids[0])]
    assert find("workflow=admin.other") == [str(ids[1])]
