"""The planes are the record: what the spine never heard, lost, or has an older copy of, sweeps tell it again."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from django_durable import Context, Execution, workflow
from django_durable.models import DispatchHint, OperatorAction, OperatorNote
from django_durable.runtime import sweeps
from tests.driving import drain
from tests.planes.conftest import NORTH, SPINE

pytestmark = pytest.mark.usefixtures("planes")

DAY = 86_400.0


@workflow
def patient(ctx: Context) -> Any:
    return ctx.wait_for_signal("go", timeout=DAY)


def started() -> Execution[Any]:
    execution = patient.using(tenant="ann").start()
    drain()
    return execution


def test_a_verb_that_the_spine_has_not_heard_of_is_copied_once_and_under_the_notes_id() -> None:
    execution = started()
    execution.pause(actor="op", reason="a tenant's own words")
    note = OperatorNote.objects.using(NORTH).get()
    wanted = {"id": note.pk, "execution_id": execution.pk, "verb": "pause", "actor": "op", "at": note.at}
    assert list(OperatorAction.objects.values()) == [wanted]

    OperatorAction.objects.all().delete()
    assert [sweeps.copy_missing_actions(NORTH) for _ in range(2)] == [1, 0]
    assert list(OperatorAction.objects.values()) == [wanted]
    assert sweeps.copy_missing_actions(SPINE) == 0


def test_a_verb_of_a_transaction_that_is_rolled_back_is_told_to_nobody() -> None:
    execution = started()
    with transaction.atomic(using=NORTH):
        execution.pause(actor="op")
        transaction.set_rollback(True, using=NORTH)
    assert sweeps.copy_missing_actions(NORTH) == 0
    assert not OperatorAction.objects.exists()


def test_a_hint_of_an_older_revision_does_not_stand_for_the_work_that_is_due_now() -> None:
    execution = started()
    [older] = DispatchHint.objects.all()
    execution.signal("go", 1)
    DispatchHint.objects.all().delete()
    DispatchHint.objects.bulk_create([older])

    assert drain() == 0
    assert sweeps.rebuild_everything(NORTH) == 1
    assert sweeps.rebuild_everything(NORTH) == 0
    assert drain() == 1
    assert Execution.objects.locate(execution.pk).output == 1
    assert not DispatchHint.objects.exists()
