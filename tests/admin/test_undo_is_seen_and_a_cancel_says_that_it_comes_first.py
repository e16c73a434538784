"""What an operator sees of an execution that is undone, while it is and afterwards."""

from __future__ import annotations

import pytest
from django.test import Client

from django_durable import Context, Execution, step, workflow
from tests.admin.flows import prepare
from tests.admin.html import parse
from tests.admin.visitors import page_of, verb_of
from tests.driving import drain

pytestmark = pytest.mark.django_db


@step("admin.take_back")
def take_back(value: int) -> None:
    if value == 2:
        raise OSError("the bank is closed")


@workflow("admin.undoable")
def undoable(ctx: Context) -> None:
    for value in (1, 2):
        ctx.compensate(take_back, value)
        ctx.step(prepare, value)
    ctx.wait_for_signal("go")


def test_a_cancel_says_that_undo_steps_run_first_and_the_page_shows_each(superuser: Client) -> None:
    execution = undoable.start()
    drain()
    response = superuser.post(verb_of(execution, "cancel"), {"reason": "changed their mind"}, follow=True)
    page = parse(response)
    assert page.messages() == [f"Execution {execution.pk} is being cancelled: its undo steps run first."]
    assert verb_of(execution, "cancel") not in page.links(), "it is being cancelled"
    assert verb_of(execution, "pause") not in page.links()
    assert {"compensating", "Ends as", "cancelled"} <= set(page.cells)

    drain()
    page = parse(superuser.get(page_of(execution)))
    assert Execution.objects.locate(execution.pk).status == "cancelled"
    assert {"undo.0", "undo.2", "admin.take_back"} <= set(page.cells)
    assert "the bank is closed" in page.text
    assert "Ends as" not in page.cells
