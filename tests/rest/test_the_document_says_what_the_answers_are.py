"""The OpenAPI document: made without a warning, the same as the one that is kept, and true of every answer."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.contrib.auth import get_user_model
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection, positive_data_acceptance

from django_durable.rest.document import document
from tests.rest import flows
from tests.rest.flows import run
from tests.rest.visitors import BASE

KEPT = Path(__file__).with_name("openapi.json")


schema = schemathesis.openapi.from_dict(document("/durable"))
schema.app = get_wsgi_application()
NOT_HERE = [
    ignored_auth,  # takes away a header; the cookies stay
    positive_data_acceptance,  # names, tags and times are checked for more than a schema says
]
FEW = settings(
    max_examples=int(os.environ.get("REST_EXAMPLES", "4")),
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def text_of(made: dict[str, Any]) -> str:
    return json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False, default=str) + "\n"


def test_it_is_made_without_a_warning_and_valid() -> None:
    document.cache_clear()
    GENERATOR_STATS.reset()
    made = document("/durable")
    assert not GENERATOR_STATS._warn_cache
    assert not GENERATOR_STATS._error_cache
    validate_schema(made)


def test_it_is_the_one_that_is_kept() -> None:
    """A change is a change of the interface. ``python -m tests.rest.keep_document`` writes the file anew."""
    assert text_of(document("/durable")) == KEPT.read_text()


def test_it_is_the_same_whatever_the_project_makes_its_own_with(settings: Any) -> None:
    before = text_of(document("/durable"))
    document.cache_clear()
    settings.SPECTACULAR_SETTINGS = {"TITLE": "other", "COMPONENT_SPLIT_REQUEST": True}
    assert text_of(document("/durable")) == before


@pytest.mark.django_db
def test_the_project_may_have_ours_in_its_own() -> None:
    from drf_spectacular.generators import SchemaGenerator

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = SchemaGenerator().get_schema(request=None, public=True)
    assert f"{BASE}executions/" in made["paths"]


def signed_in() -> dict[str, str]:
    """A superuser's cookies: every answer of the document is within reach."""
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root"))
    token = "a" * 32
    return {"sessionid": client.cookies["sessionid"].value, "csrftoken": token}


@pytest.fixture(autouse=True)
def _one_connection() -> Iterator[None]:
    """A request of a real server would close the connection that the test's transaction is on."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def known(db: None) -> dict[str, Any]:
    """Cookies, and an execution in each state that operators meet."""
    states = ("", "wait", "fail", "break", "ask", "update", "publish", "undo", "child", "callback")
    made = {what: run(what, key=what or "done") for what in states}
    flows.state["broken"] = False
    return {"cookies": signed_in(), "made": itertools.cycle(made.values())}


@FEW
@schema.parametrize()
def test_whatever_is_sent_is_answered_as_the_document_says(case: Any, known: dict[str, Any]) -> None:
    cookies = known["cookies"]
    answer = case.call(cookies=cookies, headers={"X-CSRFToken": cookies["csrftoken"]})
    case.validate_response(answer, excluded_checks=NOT_HERE)


@FEW
@schema.include(path_regex="/executions/{id}/").parametrize()
def test_executions_that_exist_are_answered_as_the_document_says(case: Any, known: dict[str, Any]) -> None:
    cookies = known["cookies"]
    case.path_parameters["id"] = str(next(known["made"]).pk)
    answer = case.call(cookies=cookies, headers={"X-CSRFToken": cookies["csrftoken"]})
    case.validate_response(answer, excluded_checks=[*NOT_HERE, negative_data_rejection])
