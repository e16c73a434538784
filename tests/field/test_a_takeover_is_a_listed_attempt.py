"""Field report B04: a claim expires and another worker goes on. Each take-over counts, and shows who held it."""

from __future__ import annotations

import json

from tests.field.rig.yard import Yard


def test_each_lost_worker_is_listed_with_its_times_and_the_list_outlives_the_end(yard: Yard) -> None:
    execution = yard.start("standing", "x")
    lost = []
    for number in (1, 2):
        lost.append(yard.worker())
        yard.wait_for_effect("begin x", times=number)
        held = yard.reload(execution)
        assert f":{lost[-1].pid}:" in held.worker
        assert held.claimed_at is not None
        lost[-1].kill()
    last = yard.worker()
    yard.wait_for_effect("begin x", times=3)
    during = yard.reload(execution)
    assert f":{last.pid}:" in during.worker
    assert during.recoveries == 2
    yard.open("x")
    done = yard.wait_for_status(execution, "completed")

    takeovers = json.loads(done.takeovers)
    assert takeovers == json.loads(during.takeovers)
    assert [entry["reason"] for entry in takeovers] == ["lease expired", "lease expired"]
    for entry, worker in zip(takeovers, lost, strict=True):
        assert f":{worker.pid}:" in entry["worker"]
        assert entry["start"] < entry["end"]
    assert takeovers[0]["end"] <= takeovers[1]["start"]
    assert yard.show(execution)["takeovers"] == takeovers
    assert yard.begun() == ["x-before", "x", "x", "x", "x-after"]
