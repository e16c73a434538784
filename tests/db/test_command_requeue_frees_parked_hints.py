"""``durable requeue``: by the id of a hint or of its execution, with a name; refused where nothing is parked."""

from __future__ import annotations

import pytest

from django_durable import Context, Execution, workflow
from django_durable.models import DispatchHint, OperatorAction, OperatorNote
from tests.calling import durable
from tests.driving import USING, drain

pytestmark = pytest.mark.django_db


@workflow("requeued.plain")
def plain(ctx: Context) -> int:
    return 7


def parked() -> tuple[Execution[int], DispatchHint]:
    execution = plain.start()
    hints = DispatchHint.objects.using(USING).filter(execution_id=execution.pk)
    hints.update(state=DispatchHint.State.PARKED, failures=10, category="plane-unresolved")
    assert drain() == 0
    return execution, hints.get()


@pytest.mark.parametrize("of", ["hint", "execution"])
def test_what_is_parked_goes_on(of: str) -> None:
    execution, hint = parked()
    wanted = hint.pk if of == "hint" else execution.pk
    done = durable("requeue", str(wanted), "--actor", "ann", "--reason", "the plane is back", "--json")
    assert (done.code, done.data) == (0, {"requeued": [str(hint.pk)]})
    hint.refresh_from_db(using=USING)
    assert (hint.state, hint.failures, hint.category) == (DispatchHint.State.LIVE, 0, "")
    assert OperatorAction.objects.using(USING).get().actor == "ann"
    assert OperatorNote.objects.using(USING).get().reason == "the plane is back"
    drain()
    execution.refresh_from_db()
    assert execution.output == 7


def test_what_is_not_parked_is_refused() -> None:
    execution = plain.start()
    hint = DispatchHint.objects.using(USING).get()
    assert durable("requeue", str(execution.pk)).code == 1
    refused = durable("requeue", str(hint.pk))
    assert refused.code == 1
    assert "is not parked" in refused.error


@pytest.mark.parametrize("wanted", ["nonsense", "01a22f89-30e4-784e-a835-69f8b4ab2311"])
def test_what_is_not_there_is_not_found(wanted: str) -> None:
    assert durable("requeue", wanted).code == 3
