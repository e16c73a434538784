"""``worker --plane``: one plane's hints, the spine's own, or all; an unknown or closed plane is refused."""

from __future__ import annotations

import pytest
from django.test import override_settings

from django_durable import Context, Execution, step, workflow
from django_durable.models import DispatchHint
from django_durable.operators.planes import close_plane
from django_durable.planes import register_plane
from tests.calling import durable
from tests.planes.conftest import NORTH, SOUTH, SPINE

pytestmark = pytest.mark.usefixtures("planes")


@step
def note(text: str) -> str:
    return text


@workflow("one_plane.plain")
def plain(ctx: Context, name: str) -> str:
    return ctx.step(note, name)


def statuses(executions: dict[str, Execution[str]]) -> dict[str, str]:
    return {name: Execution.objects.locate(one.pk).status for name, one in executions.items()}


def test_it_runs_its_own_plane_and_nothing_else() -> None:
    durable_setting = {"SPINE": SPINE, "PLANES": {"north": NORTH, "south": SOUTH}, "UNTENANTED": "control-plane"}
    with override_settings(DURABLE=durable_setting):
        executions = {
            "north": plain.using(tenant="ann").start("x"),
            "south": plain.using(tenant="cid").start("x"),
            SPINE: plain.start("x"),
        }
        ended: set[str] = set()
        for plane in ("south", SPINE, "north"):
            called = durable("worker", "--plane", plane, "--until-idle", "--concurrency", "1")
            assert called.code == 0, called.error
            assert f"plane {plane}" in called.err
            ended.add(plane)
            found = statuses(executions)
            assert {name for name, status in found.items() if status == "completed"} == ended
            assert {status for name, status in found.items() if name not in ended} <= {"pending"}
            # Not even leased: a lease would hide the work from the others.
            assert not DispatchHint.objects.filter(token__isnull=False).exists()


def test_a_plane_that_was_registered_later_can_be_served() -> None:
    with override_settings(DURABLE={"SPINE": SPINE, "PLANES": {"north": NORTH}}):
        register_plane("late", SOUTH)
        execution = plain.using(tenant="ann").start("x")
        assert durable("worker", "--plane", "late", "--until-idle").code == 0
        assert Execution.objects.locate(execution.pk).status == "pending"
        assert durable("worker", "--until-idle").code == 0
        assert Execution.objects.locate(execution.pk).status == "completed"


def test_an_unknown_and_a_closed_plane_are_refused() -> None:
    called = durable("worker", "--plane", "west", "--until-idle")
    assert called.code == 3
    assert ", ".join(sorted([SPINE, "north", "south"])) in called.error
    close_plane("south", actor="op", force=True)
    called = durable("worker", "--plane", "south", "--until-idle")
    assert (called.code, "closed" in called.error) == (1, True)
