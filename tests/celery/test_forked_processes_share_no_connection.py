"""Prefork: what the parent opened is not used by a child, and no two children use one connection."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.celery.fleet import Fleet


def test_each_connection_serves_one_process(fleet: Fleet) -> None:
    fleet.settings = {"CELERY_WORKER_MAX_TASKS_PER_CHILD": 12}
    worker = fleet.worker("-c", "4")
    fleet.beat()
    fleet.outputs([fleet.start("queries", f"q{number}") for number in range(60)], within=60)
    users = defaultdict(set)
    for line in fleet.lines():
        pid, _word, backend = line.split()
        users[backend].add(pid)
    processes = set().union(*users.values())
    assert len(processes) > 4  # children were replaced on the way
    assert str(worker.pid) not in processes
    if fleet.backend == "postgresql":
        assert max(map(len, users.values())) == 1
    assert "Traceback" not in worker.stderr
    assert not {"WARNING/", "ERROR/"} & set(re.findall(r"[A-Z]+/", worker.stderr))
