"""Ten thousand waiting executions of one tenant delay another tenant's single one by one admission each tenant."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest

from django_durable.clock import read_now
from django_durable.models import DispatchHint
from tests.driving import USING, claim
from tests.flow import limited

pytestmark = pytest.mark.usefixtures("queues")

CROWD = 10_000


def test_a_single_execution_is_the_second_to_be_admitted() -> None:
    limited.one.using(queue="flow.single", tenant="noisy").start()
    [pattern] = DispatchHint.objects.using(USING).all()
    crowd = [
        DispatchHint(
            **{
                field.attname: getattr(pattern, field.attname)
                for field in DispatchHint._meta.concrete_fields
                if field.attname not in ("id", "execution_id")
            },
            execution_id=uuid4(),
        )
        for _ in range(CROWD)
    ]
    DispatchHint.objects.using(USING).bulk_create(crowd, batch_size=2_000)
    single = limited.one.using(queue="flow.single", tenant="quiet").start()
    admitted = 0
    while True:
        began = time.monotonic()
        claims = claim(1)
        admitted += 1
        assert time.monotonic() - began < 2, "the length of the backlog shows in the time of a claim"
        if any(claimed.id == single.pk for claimed in claims):
            break
        # The copies stand for no execution: their hints are dropped, which frees the slot.
        DispatchHint.objects.using(USING).filter(token__isnull=False, due_at__gt=read_now(USING)).delete()
        assert admitted <= 2
    assert admitted <= 2
