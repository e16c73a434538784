"""Whatever plan the server makes: a subquery that is run again for each row would find another one each time."""

from __future__ import annotations

import pytest

from django_durable import Context, workflow
from django_durable.engine.transitions.hint_lease import lease
from django_durable.models import DispatchHint
from django_durable.runtime.claiming import terms_of
from tests.driving import USING, connection


@workflow("lease_limit.plain")
def plain(ctx: Context, number: int) -> int:
    return number


@pytest.mark.django_db
@pytest.mark.parametrize("limit", [1, 3])
def test_no_plan_leases_more_than_was_asked_for(limit: int) -> None:
    for number in range(10):
        plain.start(number)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for way in ("hashjoin", "hashagg", "sort", "material"):
                cursor.execute(f"SET LOCAL enable_{way} = off")
    leased = lease(USING, terms_of(limit=limit, queues=("durable",)))
    assert len(leased) == limit
    assert DispatchHint.objects.exclude(token=None).count() == limit
