"""A worker frozen past its lease and thawed: it may finish the body it was in; nothing of it is recorded."""

from __future__ import annotations

from tests.processes.shop import Shop


def test_a_thawed_worker_finishes_its_body_and_begins_no_other(shop: Shop) -> None:
    frozen = shop.worker()
    execution = shop.start("three", "x")
    shop.wait_for_effect("begin x-b")
    frozen.freeze()
    peer = shop.worker()
    shop.wait_for_effect("begin x-b", times=2)
    shop.open("x-b")
    done = shop.wait_for_status(execution, "completed")
    before = done.history()
    frozen.thaw()
    zombie = str(frozen.pid)
    shop.project.wait_for(lambda: f"{zombie} end x-b" in shop.lines(), within=30)
    # It goes on working: a new execution is taken by whoever is free, and the old one stays as it was.
    peer.terminate()
    peer.wait(within=30)
    other = shop.start("quick", "y")
    assert shop.wait_for_status(other, "completed").output == "y"
    assert f"{zombie} begin x-c" not in shop.lines()
    after = shop.reload(execution)
    assert after.history() == before
    assert after.revision == done.revision
    assert frozen.is_running
