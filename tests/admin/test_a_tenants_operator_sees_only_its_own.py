"""With ``TENANT_RESOLVER`` a request belongs to a tenant: whatever is another one's is not there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.test import Client, override_settings

from django_durable import Execution
from django_durable.models import OperatorNote
from tests.admin.flows import failed
from tests.admin.html import parse
from tests.admin.visitors import ACTIONS, DEAD_LETTERS, EXECUTIONS, HINTS, VERBS, page_of, sign_in, verb_of

pytestmark = pytest.mark.django_db

asked: list[str] = []


def tenant_of(request: HttpRequest) -> Any:
    """By the user's name, as a project would look it up."""
    asked.append(request.path)
    name = request.user.get_username()
    if name == "nobody":
        raise PermissionDenied
    return {"anna": "acme", "berta": "bolts", "broken": 5}.get(name)


@pytest.fixture(autouse=True)
def _resolver() -> Iterator[None]:
    asked.clear()
    with override_settings(DURABLE={"TENANT_RESOLVER": f"{__name__}.tenant_of"}):
        yield


@pytest.fixture
def executions() -> dict[str, Execution[Any]]:
    """One key, three tenants."""
    return {tenant: failed("same", tenant=tenant or None) for tenant in ("acme", "bolts", "")}


def shown(client: Client, url: str, executions: dict[str, Execution[Any]]) -> set[str]:
    links = [link.partition("?")[0] for link in parse(client.get(url)).links()]
    return {tenant for tenant, execution in executions.items() if page_of(execution) in links}


def boss(name: str) -> Client:
    return sign_in(
        "viewer", "view_payload", *(f"{verb}_execution" for verb in ("retry", "cancel", "pause")), name=name
    )


@pytest.mark.parametrize(
    "url", [EXECUTIONS, DEAD_LETTERS, f"{EXECUTIONS}?q=same", f"{EXECUTIONS}?status__exact=failed"]
)
def test_lists_hold_the_tenants_own(url: str, executions: dict[str, Execution[Any]]) -> None:
    assert shown(boss("anna"), url, executions) == {"acme"}
    assert shown(boss("berta"), url, executions) == {"bolts"}


def test_who_has_no_tenant_sees_everything_as_superuser_and_the_untenanted_otherwise(
    executions: dict[str, Execution[Any]],
) -> None:
    assert shown(boss("carla"), EXECUTIONS, executions) == {""}
    assert shown(sign_in("superuser"), EXECUTIONS, executions) == {"acme", "bolts", ""}
    assert shown(sign_in("superuser", name="anna"), EXECUTIONS, executions) == {"acme"}


def test_a_foreign_execution_is_not_found_and_not_changed(executions: dict[str, Execution[Any]]) -> None:
    anna = boss("anna")
    assert anna.get(page_of(executions["acme"])).status_code == 200
    for tenant in ("bolts", ""):
        assert anna.get(page_of(executions[tenant])).status_code == 404
        for verb in VERBS:
            assert anna.get(verb_of(executions[tenant], verb)).status_code == 404
            assert anna.post(verb_of(executions[tenant], verb)).status_code == 404
    assert not OperatorNote.objects.exists()


def test_a_crafted_action_does_not_reach_a_foreign_execution(executions: dict[str, Execution[Any]]) -> None:
    ids = [str(execution.pk) for execution in executions.values()]
    data = {"action": "retry_selected", "confirmed": "yes", "select_across": "1", ACTION_CHECKBOX_NAME: ids}
    page = parse(boss("anna").post(EXECUTIONS, data, follow=True))
    assert page.messages()[0] == "Executions not found: 2"
    assert [note.execution_id for note in OperatorNote.objects.all()] == [executions["acme"].pk]


def test_rows_that_name_every_tenants_executions_are_for_operators_of_all(
    executions: dict[str, Execution[Any]],
) -> None:
    for client in (boss("anna"), sign_in("superuser", name="berta"), boss("carla")):
        for url in (HINTS, ACTIONS):
            assert client.get(url).status_code == 403
            assert url not in client.get("/admin/").content.decode()
    for url in (HINTS, ACTIONS):
        assert sign_in("superuser", name=f"all{len(url)}").get(url).status_code == 200


def test_the_resolver_is_asked_once_a_request_and_its_refusal_holds(executions: dict[str, Execution[Any]]) -> None:
    anna = boss("anna")
    asked.clear()
    anna.get(page_of(executions["acme"]))
    assert len(asked) == 1
    nobody = boss("nobody")
    assert nobody.get(EXECUTIONS).status_code == 403
    assert nobody.get("/admin/").status_code == 200, "the other apps' pages are no business of the resolver"
    with pytest.raises(TypeError, match=r"the tenant that .*tenant_of returned must be a str, not int"):
        boss("broken").get(EXECUTIONS)
