"""The whole life of a plane, from a shell, with workers that are told nothing and restarted never."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.services.databases import FreshDatabase
from tests.services.project import Project


def test_a_plane_is_added_filled_drained_and_closed_while_a_worker_runs(
    project: Project, fresh_database: Callable[[], FreshDatabase]
) -> None:
    for alias in ("north", "south"):
        project.add_plane(alias, fresh_database())

    def durable(*arguments: str, expect: int = 0) -> str:
        return project.run_manage("durable", *arguments, expect=expect).stdout

    worker = project.manage("durable", "worker")
    durable("planes", "place", "acme", "north", "--settings", "testproject.settings")
    durable("planes", "place", "zenith", "south")
    ids = [
        durable("start", "shop.fulfil", "--tenant", tenant, "--input", '{"order_id": 1}').strip()
        for tenant in ("acme", "zenith")
    ]
    listed = json.loads(durable("list", "--json"))
    assert {row["id"]: row["plane"] for row in listed} == {ids[0]: "north", ids[1]: "south"}
    durable("planes", "drain", "south")
    durable("planes", "place", "initech", "south", expect=1)
    durable("planes", "move", "zenith", "--to", "north")
    durable("planes", "close", "south")
    assert {row["plane"] for row in json.loads(durable("list", "--json"))} == {"north"}
    assert json.loads(durable("doctor", "--json"))["findings"] == []
    worker.terminate()
    assert worker.wait(within=30) == 0
