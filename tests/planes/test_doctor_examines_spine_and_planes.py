"""Rule 68 with planes: nothing on a healthy or busy system, and of each fault exactly its own finding, with its plane."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from django_durable import Context, Execution, step, workflow
from django_durable.authoring import registry
from django_durable.clock import read_now
from django_durable.ids import time_ordered_id
from django_durable.models import DataPlane, DispatchHint, ExecutionRoute, Outbox, SweepClaim, TenantPlacement
from django_durable.operators.doctor import adrift, examine, liveness, liveness_violations
from django_durable.operators.move import tenant as moving
from django_durable.operators.planes import close_plane
from django_durable.planes import move_tenant
from django_durable.planes.registry import forget_planes
from django_durable.runtime.tick import tick
from tests.calling import durable
from tests.driving import claim, drain, lapse_leases
from tests.planes.conftest import NORTH, SOUTH, SPINE
from tests.planes.faults import down, lagging

pytestmark = pytest.mark.usefixtures("planes")


@step
def add(number: int) -> int:
    return number + 1


@workflow("planes_doctor.flow")
def flow(ctx: Context, then: str) -> int:
    number = ctx.step(add, 1)
    if then == "sleep":
        ctx.sleep(3600)
    elif then == "wait":
        ctx.wait_for_signal("go")
    elif then == "wait a while":
        ctx.wait_for_signal("go", timeout=3600)
    elif then == "fail":
        raise ValueError("no")
    elif then == "nap":
        ctx.sleep(0.02)
    return ctx.step(add, number)


@pytest.fixture(autouse=True)
def _ticked(monkeypatch: pytest.MonkeyPatch, planes: None) -> None:
    """Somebody sweeps, so that only the fault of the test is one; nothing here takes long to settle."""
    monkeypatch.setattr(adrift, "SETTLING_SECONDS", 0.2)
    tick()


def start(then: str, tenant: str = "ann", **using: Any) -> Execution[Any]:
    return flow.using(tenant=tenant, **using).start(then)


def asleep(tenant: str = "ann") -> Execution[Any]:
    execution = start("sleep", tenant)
    drain()
    return execution


def found() -> dict[tuple[str, str], list[UUID]]:
    return {(one.code, one.plane): list(one.executions) for one in examine()}


def ago(seconds: float, alias: str = SPINE) -> Any:
    return read_now(alias) - timedelta(seconds=seconds)


def rows(alias: str) -> Any:
    return Execution._base_manager.using(alias)


# -- healthy -------------------------------------------------------------------------------------------------


def test_every_healthy_state_on_both_planes_has_no_findings() -> None:
    for tenant in ("ann", "bob", "cid"):
        for then in ("end", "sleep", "wait", "wait a while", "fail"):
            start(then, tenant)
            start(then, tenant, timeout=7200)
        start("end", tenant).cancel(actor="anna")
    drain()
    tick()
    for tenant in ("ann", "cid"):
        start("wait", tenant).pause(actor="anna")
        start("end", tenant, run_after=3600)
        start("end", tenant)
    claim(limit=3)
    statuses = {status for alias in (NORTH, SOUTH) for status in rows(alias).values_list("status", flat=True)}
    assert {"pending", "running", "waiting", "paused", "completed", "failed", "cancelled"} <= statuses

    assert found() == {}
    assert liveness_violations(NORTH) == liveness_violations(SOUTH) == []


def test_a_busy_system_has_no_findings_at_any_moment() -> None:
    """Workers in other threads: every look falls into the middle of something else."""
    started = [start(then, tenant) for _ in range(6) for then in ("end", "nap", "fail") for tenant in ("ann", "cid")]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            durable("worker", "--until-idle", "--concurrency", "2")
            while rows(NORTH).exclude(status__in=("completed", "failed")).exists():
                durable("worker", "--until-idle", "--concurrency", "2")
            durable("worker", "--until-idle", "--concurrency", "2")
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    worker = threading.Thread(target=work)
    worker.start()
    looks = 0
    try:
        while worker.is_alive():
            assert found() == {}
            assert liveness_violations(NORTH) == liveness_violations(SOUTH) == []
            looks += 1
    finally:
        worker.join()
    assert failures == []
    assert looks > 2
    assert {Execution.objects.locate(one.pk).is_terminal for one in started} == {True}
    assert found() == {}


def test_halves_of_two_moments_are_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """An execution moves on between the look at it and the look at its hint; a hint comes late from the outbox."""
    execution = asleep()
    moved: list[int] = []
    original = liveness.intents

    def moving_on(wanted: Any, executions: list[UUID]) -> Any:
        if wanted.model is DispatchHint and not moved:
            moved.append(1)
            DispatchHint.objects.update(revision=99)
            rows(NORTH).filter(pk=execution.pk).update(revision=99)
        return original(wanted, executions)

    monkeypatch.setattr(liveness, "intents", moving_on)
    assert liveness_violations(NORTH) == []
    assert moved == [1]


def test_the_control_without_a_second_look_finds_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "stood_still", lambda _place, suspects: suspects)
    with pytest.raises(AssertionError):
        test_halves_of_two_moments_are_no_finding(monkeypatch)


def test_a_hint_that_outlives_its_execution_for_a_moment_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = start("end")
    drain()
    hint = DispatchHint.objects.create(
        execution_id=execution.pk, plane="north", revision=9, queue="durable", definition="0" * 16, due_at=ago(0)
    )
    monkeypatch.setattr(adrift, "SETTLING_SECONDS", 30.0)
    monkeypatch.setattr(adrift.time, "sleep", lambda _seconds: hint.delete() if hint.pk else None)

    assert found() == {}
    assert hint.pk is None


# -- liveness and claims -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("then", "driven", "using"),
    [
        ("end", False, {}),
        ("sleep", True, {}),
        ("wait a while", True, {}),
        ("wait", True, {"timeout": 3600}),
        ("end", False, {"run_after": 3600}),
    ],
    ids=["pending", "sleeping", "waiting with a timeout", "waiting with a deadline", "delayed"],
)
def test_an_execution_without_its_hint_is_lost_until_a_rebuild(
    then: str, driven: bool, using: dict[str, Any]
) -> None:
    start("sleep", "cid")
    lost = start(then, **using)
    if driven:
        drain()
    assert DispatchHint.objects.filter(execution_id=lost.pk).delete()[0] == 1

    assert found() == {("liveness", "north"): [lost.pk]}
    assert liveness_violations(NORTH) == [lost.pk]
    assert liveness_violations(SOUTH) == []
    tick(rebuild=True)
    assert found() == {}


@pytest.mark.parametrize("awaiting", ["", "[]"])
def test_waiting_for_nothing_is_lost(awaiting: str) -> None:
    execution = start("wait")
    drain()
    rows(NORTH).filter(pk=execution.pk).update(awaiting=awaiting)

    assert found() == {("liveness", "north"): [execution.pk]}


@pytest.mark.parametrize("stale", ["revision", "epoch"])
def test_a_stale_hint_carries_nothing_on(stale: str) -> None:
    execution = asleep()
    DispatchHint.objects.update(**{stale: getattr(DispatchHint.objects.get(), stale) - 1})

    assert found() == {("liveness", "north"): [execution.pk]}


def test_more_lost_executions_than_a_page_are_all_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "PAGE", 2)
    lost = sorted(start("end").pk for _ in range(5))
    kept = start("end")
    DispatchHint.objects.exclude(execution_id=kept.pk).delete()

    assert liveness_violations(NORTH) == lost


def test_a_claim_without_its_hint_is_found_until_a_rebuild() -> None:
    execution = start("wait")
    claim()
    DispatchHint.objects.all().delete()

    assert found() == {("running-without-hint", "north"): [execution.pk]}
    tick(rebuild=True)
    assert found() == {}


def test_a_lapsed_lease_is_found_until_a_worker_takes_over() -> None:
    execution = start("wait", "cid")
    claim()
    lapse_leases()

    assert found() == {("lapsed-lease", "south"): [execution.pk]}
    drain()
    assert found() == {}


def test_ready_work_that_nobody_takes_names_its_plane_and_its_queues() -> None:
    north, south = start("wait"), start("wait", "cid", queue="slow")
    start("end", "cid")
    DispatchHint.objects.filter(execution_id__in=[north.pk, south.pk]).update(due_at=ago(61))

    assert found() == {("overdue", "north"): [north.pk], ("overdue", "south"): [south.pk]}
    assert [one.details["queues"] for one in examine()] == [["durable"], ["slow"]]
    drain()
    assert found() == {}


def test_work_on_one_plane_excuses_no_other() -> None:
    busy = start("wait", "cid")
    claim()
    idle = start("wait")
    DispatchHint.objects.filter(execution_id=idle.pk).update(due_at=ago(120))

    assert found() == {("overdue", "north"): [idle.pk]}
    assert busy.pk != idle.pk


# -- what lies between plane and spine -----------------------------------------------------------------------


def post(execution: Execution[Any], *, age: float) -> None:
    Outbox.objects.using(NORTH).create(
        execution_id=execution.pk,
        revision=execution.revision,
        epoch=0,
        queue="durable",
        priority=0,
        definition="0" * 16,
        due_at=ago(0, NORTH),
        created_at=ago(age, NORTH),
    )


def test_an_intent_on_its_way_to_the_spine_carries_on_and_is_stranded_after_a_minute() -> None:
    execution = asleep()
    DispatchHint.objects.all().delete()
    post(Execution.objects.locate(execution.pk), age=0)
    assert found() == {}
    Outbox.objects.using(NORTH).update(created_at=ago(61, NORTH))

    assert found() == {("stranded-outbox", "north"): [execution.pk]}


def test_the_hint_of_a_missing_execution_is_found_until_its_sweep() -> None:
    missing = time_ordered_id()
    DispatchHint.objects.create(
        execution_id=missing, plane="south", revision=1, queue="durable", definition="0" * 16, due_at=ago(-3600)
    )

    assert found() == {("dangling-hint", "south"): [missing]}
    SweepClaim.objects.filter(name="dangling").update(due_at=ago(1))
    tick()
    assert found() == {}


def test_the_hint_of_an_ended_execution_is_found() -> None:
    execution = start("end")
    drain()
    DispatchHint.objects.create(
        execution_id=execution.pk, plane="north", revision=9, queue="durable", definition="0" * 16, due_at=ago(0)
    )

    assert found() == {("dangling-hint", "north"): [execution.pk]}


def test_a_hint_of_a_plane_that_nobody_knows_is_found_before_and_after_it_is_parked() -> None:
    execution = asleep()
    other = start("wait", "cid")
    drain()
    DispatchHint.objects.filter(execution_id=execution.pk).update(plane="gone")
    assert found() == {("unknown-plane", "gone"): [execution.pk]}
    DispatchHint.objects.filter(execution_id=execution.pk).update(state=DispatchHint.State.PARKED)
    assert found() == {("parked", "gone"): [execution.pk]}
    assert Execution.objects.locate(other.pk).status == "waiting"


def test_a_parked_hint_of_a_plane_that_is_known_again_is_found() -> None:
    execution = asleep()
    DispatchHint.objects.update(state=DispatchHint.State.PARKED)

    assert found() == {("parked", "north"): [execution.pk]}


# -- planes and tenants --------------------------------------------------------------------------------------


def test_a_dead_plane_is_one_finding_and_the_others_are_examined() -> None:
    asleep()
    start("wait", "bob")
    claim()
    lapse_leases()
    lost = start("end", "cid")
    DispatchHint.objects.filter(execution_id=lost.pk).delete()
    with down(NORTH):
        assert found() == {("plane-unreachable", "north"): [], ("liveness", "south"): [lost.pk]}


@contextmanager
def down_later() -> Iterator[Callable[[], None]]:
    """``down``, from the moment that the yielded function is called."""
    with ExitStack() as stack:

        def die() -> None:
            stack.enter_context(down(NORTH))

        yield die


def test_a_plane_that_dies_during_the_examination_is_that_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = asleep()
    DispatchHint.objects.filter(execution_id=execution.pk).delete()
    original = liveness.lost_apart
    with monkeypatch.context() as patch, down_later() as die:

        def dying(place: Any, *, held: bool) -> Any:
            if place.plane == "north" and held:
                die()
            return original(place, held=held)

        patch.setattr(liveness, "lost_apart", dying)
        assert found() == {("plane-unreachable", "north"): []}


def test_an_alias_that_is_not_in_databases_here_is_a_plane_that_does_not_answer() -> None:
    DataPlane.objects.create(name="far", database="far_away")
    forget_planes()
    (finding,) = examine()
    assert (finding.code, finding.plane) == ("plane-unreachable", "far")
    assert "'far_away' is not in DATABASES" in finding.explanation


def test_a_plane_without_its_migrations_is_that_one_finding() -> None:
    execution = asleep()
    DispatchHint.objects.filter(execution_id=execution.pk).delete()
    with lagging(NORTH):
        (finding,) = examine()
        assert (finding.code, finding.plane, finding.count) == ("lagging-migrations", "north", 1)
        assert finding.details["migrations"] == ["django_durable.0001_initial"]
    assert found() == {("liveness", "north"): [execution.pk]}


@pytest.fixture
def forgotten() -> Iterator[Callable[[Any], None]]:
    taken: list[Any] = []

    def forget(one: Any) -> None:
        taken.append(one)
        registry.forget(one)

    yield forget
    for one in taken:
        registry.add_workflow(one)


def test_unknown_workflows_are_blocked_on_their_plane(forgotten: Callable[[Any], None]) -> None:
    execution = start("end", "cid")
    forgotten(flow)
    SweepClaim.objects.filter(name="unknown").update(due_at=ago(1))
    tick()

    assert found() == {("blocked", "south"): [execution.pk]}


def test_silence_is_found_where_there_is_work_on_a_plane() -> None:
    SweepClaim.objects.update(ran_at=ago(61), due_at=ago(60))
    assert found() == {}
    execution = asleep()
    assert found() == {("no-tick", SPINE): []}
    SweepClaim.objects.all().delete()
    assert found() == {}
    rows(NORTH).filter(pk=execution.pk).update(created_at=ago(61, NORTH))
    assert found() == {("no-tick", SPINE): []}


def test_a_move_that_was_cut_short_is_found_until_it_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    for then in ("sleep", "wait"):
        start(then)
    drain()
    start("end")
    for stage in ("copy_tenant", "_prepare", "_switch", "release", "_finish"):
        with monkeypatch.context() as patch:
            patch.setattr(moving, stage, lambda *args: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                move_tenant("ann", "south", actor="op")
        assert found() == {("unfinished-move", SPINE): []}, stage
    (finding,) = examine()
    assert finding.details["tenants"] == [{"tenant": "ann", "from": "north", "to": "south"}]
    move_tenant("ann", "south", actor="op")
    assert found() == {}


def test_a_tenant_whose_placement_is_gone_is_found() -> None:
    asleep()
    asleep("bob")
    TenantPlacement.objects.filter(pk="ann").delete()

    assert found() == {("misplaced-tenant", "north"): []}
    (finding,) = examine()
    assert (finding.count, "ann" in finding.explanation, "bob" in finding.explanation) == (1, True, False)
    assert durable("planes", "place", "ann", "north").code == 0
    assert found() == {}


def test_a_plane_that_was_closed_too_early_is_found() -> None:
    execution = asleep("cid")
    close_plane("south", actor="op", force=True)
    assert found() == {("closed-plane", "south"): [execution.pk]}
    with down(SOUTH):
        assert found() == {("closed-plane", "south"): []}
        TenantPlacement.objects.filter(pk="cid").delete()
        assert found() == {}


def test_an_old_snapshot_on_a_plane_is_found_on_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_durable.operators.doctor.surroundings.SNAPSHOT_SECONDS", 0.0)
    other = connections[SOUTH].copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            if other.vendor == "postgresql":
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT 1")
            # SQLite keeps no dead rows for a reader: there is nothing to find.
            assert found() == ({("old-snapshot", "south"): []} if other.vendor == "postgresql" else {})
        other.rollback()
    finally:
        other.close()


# -- cost and form -------------------------------------------------------------------------------------------


def test_the_cost_grows_by_pages_and_not_by_executions() -> None:
    def cost() -> int:
        total = 0
        for alias in (SPINE, NORTH, SOUTH):
            with CaptureQueriesContext(connections[alias]) as queries:
                assert found() == {}
            total += len(queries)
        return total

    asleep()
    few = cost()
    for _ in range(10):
        start("sleep")
    drain()
    assert cost() == few


def test_the_command_names_the_plane_of_each_finding() -> None:
    execution = asleep()
    DispatchHint.objects.all().delete()
    called = durable("doctor")
    assert called.code == 5
    assert "ERROR liveness (1) on north\n" in called.out
    called = durable("doctor", "--json")
    assert [(one["code"], one["plane"]) for one in called.data["findings"]] == [("liveness", "north")]
    assert set(called.data["stats"]["planes"]) == {SPINE, "north", "south"}
    with down(NORTH):
        called = durable("doctor", "--json")
    assert called.code == 5
    assert [one["code"] for one in called.data["findings"]] == ["plane-unreachable"]
    assert ExecutionRoute.objects.get().pk == execution.pk
