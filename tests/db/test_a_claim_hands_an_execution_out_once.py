"""A stale hint and the current one of the same execution may be due in one claim: one of them runs it."""

from __future__ import annotations

import pytest

from django_durable import Context, workflow
from django_durable.engine.transitions.claim import claim_due
from django_durable.ids import random_id
from django_durable.models import DispatchHint, Execution
from django_durable.runtime.claiming import terms_of
from tests.driving import USING, claim, drain, lapse_leases


@workflow("claimed_once.plain")
def plain(ctx: Context, number: int) -> int:
    return number


def leave_a_stale_hint(execution: Execution) -> None:
    """What a plane's late publication leaves: a hint of an earlier revision, due."""
    hint = DispatchHint.objects.get(execution_id=execution.id)
    hint.pk, hint.revision = random_id(), hint.revision - 1
    hint.save(force_insert=True, using=USING)


@pytest.mark.django_db
def test_an_execution_with_a_stale_hint_is_claimed_once() -> None:
    execution = plain.start(1)
    leave_a_stale_hint(execution)
    claims, odd = claim_due(USING, terms_of(limit=10, queues=("durable",)))
    assert [one.id for one in claims] == [execution.id]
    # PostgreSQL may pass the stale hint over in this pass: its execution's row has just been written by this statement.
    found = {claims[0].hint_id, *(hint.hint_id for hint in odd)}
    assert found <= set(DispatchHint.objects.values_list("pk", flat=True))
    assert len(found) == 1 + len(odd)


@pytest.mark.django_db
def test_the_stale_hint_is_dropped_and_the_execution_ends() -> None:
    execution = plain.start(1)
    leave_a_stale_hint(execution)
    assert len(claim()) == 1
    lapse_leases()
    drain()
    execution.refresh_from_db()
    assert execution.status == "completed"
    assert not DispatchHint.objects.filter(execution_id=execution.id).exists()
