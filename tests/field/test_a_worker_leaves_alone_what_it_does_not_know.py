"""Field report B94: during a rolling deploy an old worker fails the runs of a new workflow.

Whoever does not know a workflow leaves its runs alone. They become ``blocked``, which ``doctor`` reports, and cost
nothing; the first worker that knows them runs them all.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from django_durable import Context, Execution, workflow
from django_durable.authoring import registry
from django_durable.models import Checkpoint, DispatchHint
from django_durable.runtime import unknown_work
from tests.driving import claim, drain
from tests.field.bench import workflows
from tests.field.bench.running import bench_of
from tests.processes import workflows as processes
from tests.services.project import Project


def test_an_old_worker_runs_what_it_knows_and_a_new_one_all_the_rest(project: Project, tmp_path: Path) -> None:
    bench = bench_of(project, tmp_path)
    project.own_env["DJANGO_SETTINGS_MODULE"] = "tests.processes.settings"
    unknown = [workflows.plain.start(f"new {number}") for number in range(20)]
    known = [processes.quick.start(str(number)) for number in range(20)]
    old = bench.worker("--concurrency", "2")
    for execution in known:
        bench.wait_for_status(execution, "completed")
    for execution in unknown:
        blocked = bench.wait_for_status(execution, "blocked")
        assert (blocked.recoveries, blocked.started_at, blocked.checkpoints.count()) == (0, None, 0)
        assert blocked.error is not None
        assert "bench.plain" in blocked.error["message"]
    told = project.run_manage("durable", "doctor", "--json", expect=5)
    [finding] = json.loads(told.stdout)["findings"]
    assert (finding["code"], finding["count"]) == ("blocked", 20)
    assert set(finding["executions"]) == {str(execution.pk) for execution in unknown}

    project.own_env["DJANGO_SETTINGS_MODULE"] = "tests.field.bench.settings"
    bench.worker("--concurrency", "2")
    for number, execution in enumerate(unknown):
        done = bench.wait_for_status(execution, "completed", within=20)
        assert (done.output, done.recoveries, done.error) == (f"new {number}", 0, None)
    assert old.is_running
    assert sorted(line for line in bench.effects() if line.startswith("new")) == sorted(
        f"new {number}" for number in range(20)
    )


@workflow
def known_here(ctx: Context, number: int) -> int:
    return number


@workflow
def gone(ctx: Context) -> None: ...


@pytest.mark.django_db
def test_a_crowd_of_unknown_runs_hides_no_other_and_is_blocked_page_by_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("django_durable.runtime.stretch.BATCH", 40)
    for _ in range(100):
        gone.start()
    registry.forget(gone)
    try:
        known = [known_here.start(number) for number in range(5)]
        assert {claimed.id for claimed in claim(limit=5)} == {execution.pk for execution in known}
        assert claim(limit=5) == []
        assert [unknown_work.block_unknown("default") for _ in range(4)] == [40, 40, 20, 0]
        assert DispatchHint.objects.filter(state=DispatchHint.State.BLOCKED).count() == 100
        assert drain() == 0
        assert claim(blocked=True) == []
    finally:
        registry.add_workflow(gone)
    rows = Execution.objects.filter(workflow=gone.name)
    assert set(rows.values_list("status", "recoveries", "started_at")) == {("blocked", 0, None)}
    assert not Checkpoint.objects.exists()
