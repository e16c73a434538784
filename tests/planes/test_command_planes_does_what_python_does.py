"""``durable planes``: its actions, their exit codes, and who did it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from django_durable import Context, Execution, step, workflow
from django_durable.models import DataPlane, OperatorAction, TenantEpoch, TenantPlacement
from django_durable.planes import plane_of
from django_durable.planes.registry import all_planes
from tests.calling import durable
from tests.driving import drain
from tests.planes.conftest import NORTH, SOUTH, SPINE
from tests.planes.faults import down, lagging

pytestmark = pytest.mark.usefixtures("planes")


@step
def note(text: str) -> str:
    return text


@workflow("planes_command.errand")
def errand(ctx: Context, name: str) -> str:
    return ctx.step(note, f"{name} {ctx.wait_for_signal('answer')}")


def start(tenant: str) -> Execution[Any]:
    execution = errand.using(tenant=tenant).start(tenant)
    drain()
    return execution


def planes(*arguments: Any, **options: Any) -> dict[str, dict[str, Any]]:
    called = durable("planes", "list", "--json", *arguments, **options)
    assert called.code == 0
    return {row["name"]: row for row in called.data}


def test_list_shows_each_plane_as_it_is() -> None:
    start("ann")
    start("bob")
    assert planes() == {
        "north": {
            "name": "north",
            "database": NORTH,
            "state": "active",
            "generation": 0,
            "reachable": True,
            "migrations_behind": 0,
            "unfinished": 2,
            "tenants": 2,
            "reason": "",
        },
        "south": {
            "name": "south",
            "database": SOUTH,
            "state": "active",
            "generation": 0,
            "reachable": True,
            "migrations_behind": 0,
            "unfinished": 0,
            "tenants": 1,
            "reason": "",
        },
    }
    lines = durable("planes", "list").out.splitlines()
    assert lines[0].split() == [
        *("NAME", "DATABASE", "STATE", "GENERATION", "REACHABLE", "MIGRATIONS", "BEHIND", "UNFINISHED", "TENANTS")
    ]
    assert lines[1].split() == ["north", "north", "active", "0", "yes", "0", "2", "2"]


def test_list_shows_the_others_where_one_is_away_or_lags() -> None:
    start("cid")
    with down(NORTH), lagging(SOUTH):
        found = planes()
        told = durable("planes", "list")
    assert (found["north"]["reachable"], found["north"]["unfinished"]) == (False, None)
    assert "unavailable" in found["north"]["reason"]
    assert (found["south"]["reachable"], found["south"]["migrations_behind"]) == (True, 1)
    assert found["south"]["unfinished"] == 1
    assert (told.code, "north: database 'north' is unavailable" in told.err) == (0, True)


def test_add_registers_repoints_and_opens_again() -> None:
    called = durable("planes", "add", "south", SOUTH, "--actor", "anna")
    assert called.code == 0
    assert [line.split() for line in called.out.splitlines()] == [
        ["plane", "south"],
        ["database", SOUTH],
        ["state", "active"],
    ]
    assert durable("planes", "close", "south", "--force").code == 0
    assert all_planes()["south"].state == "closed"
    assert durable("planes", "add", "south", SOUTH).code == 0
    assert all_planes()["south"].state == "active"
    refused = durable("planes", "add", "west", "nowhere")
    assert (refused.code, "not in DATABASES" in refused.error) == (1, True)
    taken = durable("planes", "add", "west", NORTH)
    assert (taken.code, "is plane 'north' already" in taken.error) == (1, True)
    assert not DataPlane.objects.filter(pk="west").exists()
    assert OperatorAction.objects.filter(verb="add_plane", actor="anna").count() == 1


def test_add_tells_what_is_wrong_with_the_database_s_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert durable("planes", "add", "south", SOUTH).err == ""
    monkeypatch.setitem(connections[SOUTH].settings_dict, "ATOMIC_REQUESTS", True)
    called = durable("planes", "add", "south", SOUTH)
    assert called.code == 0
    assert called.err.startswith("durable.W011: ")


def test_drain_and_close_change_the_state_and_strand_nothing() -> None:
    execution = start("cid")
    assert durable("planes", "drain", "south", "--json").data == {"plane": "south", "state": "draining"}
    assert durable("planes", "place", "dora", "south").code == 1
    assert durable("planes", "move", "ann", "--to", "south").code == 1
    refused = durable("planes", "close", "south")
    assert (refused.code, refused.out, "'cid'" in refused.error) == (1, "", True)
    assert durable("planes", "move", "cid", "--to", "north").code == 0
    assert durable("planes", "close", "south").code == 0
    assert planes()["south"]["state"] == "closed"
    assert durable("planes", "move", "ann", "--to", "south").code == 1
    Execution.objects.locate(execution.pk).signal("answer", "yes")
    drain()
    assert Execution.objects.locate(execution.pk).output == "cid yes"


def test_place_and_move_and_bump_say_what_is_the_case_now() -> None:
    assert durable("planes", "place", "dora", "south", "--json").data == {"tenant": "dora", "plane": "south"}
    assert plane_of("dora") == SOUTH
    elsewhere = durable("planes", "place", "dora", "north")
    assert (elsewhere.code, "move" in elsewhere.error) == (1, True)
    execution = start("dora")
    called = durable("planes", "move", "dora", to="north", actor="anna", json=True)
    assert called.data == {"tenant": "dora", "plane": "north", "executions": 1}
    assert Execution.objects.locate(execution.pk).using == NORTH
    assert OperatorAction.objects.filter(verb="move_tenant", actor="anna").count() == 1
    before = TenantEpoch.objects.using(NORTH).get(pk="dora").epoch
    called = durable("planes", "bump-epoch", "dora", "--json")
    assert called.data == {"tenant": "dora", "epoch": before + 1}
    assert OperatorAction.objects.filter(verb="bump_epoch").count() == 1


@pytest.mark.parametrize(
    "call",
    [
        ["drain", "west"],
        ["close", "west"],
        ["migrate", "north", "west"],
        ["place", "dora", "west"],
        ["move", "ann", "--to", "west"],
        ["move", "nobody", "--to", "north"],
        ["bump-epoch", "nobody"],
    ],
    ids=" ".join,
)
def test_an_unknown_plane_or_tenant_is_not_found_and_nothing_is_changed(call: list[str]) -> None:
    placed = list(TenantPlacement.objects.order_by("pk").values())
    called = durable("planes", *call)
    assert (called.code, called.out) == (3, "")
    assert "west" in called.error or "nobody" in called.error
    assert list(TenantPlacement.objects.order_by("pk").values()) == placed
    assert not OperatorAction.objects.exists()
    assert not DataPlane.objects.exists()


@pytest.mark.parametrize(
    "call",
    [
        [],
        ["open"],
        ["add", "west"],
        ["drain"],
        ["place", "dora"],
        ["move", "ann"],
        ["move", "ann", "south"],
        ["drain", "north", "south"],
        ["drain", "north", "--to", "south"],
        ["drain", "north", "--force"],
        ["drain", "north", "--actor", " "],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_a_usage_error(call: list[str]) -> None:
    assert durable("planes", *call).code == 2
    assert not DataPlane.objects.exists()


@pytest.mark.parametrize("call", [["bump-epoch", "ann"], ["move", "ann", "--to", "south"], ["close", "north"]])
def test_a_plane_that_is_away_is_unavailable(call: list[str]) -> None:
    if call[0] == "close":
        TenantPlacement.objects.filter(plane="north").delete()
    with down(NORTH):
        called = durable("planes", *call)
    assert (called.code, called.out) == (4, "")
    assert "'north'" in called.error


# -- migrate -------------------------------------------------------------------------------------------------


def behind(alias: str) -> bool:
    return ("django_durable", "0001_initial") not in MigrationRecorder(connections[alias]).applied_migrations()


def drop_a_migrated_app(alias: str) -> None:
    """Let the database want a migration that really runs: that of an app without tables there."""
    MigrationRecorder(connections[alias]).migration_qs.filter(app="sessions").delete()


def wants_sessions(alias: str) -> bool:
    return ("sessions", "0001_initial") not in MigrationRecorder(connections[alias]).applied_migrations()


def test_migrate_runs_on_every_plane_or_on_those_that_are_named() -> None:
    for alias in (NORTH, SOUTH, SPINE):
        drop_a_migrated_app(alias)
    try:
        called = durable("planes", "migrate", "south", "--json")
        assert called.code == 0
        assert [(row["plane"], row["migrated"]) for row in called.data] == [("south", True)]
        assert "Applying sessions.0001_initial... OK" in called.err
        assert [wants_sessions(alias) for alias in (NORTH, SOUTH, SPINE)] == [True, False, True]
        assert "django_session" in connections[SPINE].introspection.table_names()
        called = durable("planes", "migrate")
        assert called.code == 0
        assert [line.split()[:3] for line in called.out.splitlines()[1:]] == [
            ["north", NORTH, "yes"],
            ["south", SOUTH, "yes"],
        ]
        assert [wants_sessions(alias) for alias in (NORTH, SOUTH, SPINE)] == [False, False, True]
    finally:
        MigrationRecorder(connections[SPINE]).record_applied("sessions", "0001_initial")


def test_one_that_is_away_or_fails_stops_none_of_the_others() -> None:
    drop_a_migrated_app(SOUTH)
    with down(NORTH):
        called = durable("planes", "migrate", "--json")
    assert called.code == 4
    assert called.error == "not migrated: north"
    assert [(row["plane"], row["migrated"], row["unavailable"]) for row in called.data] == [
        ("north", False, True),
        ("south", True, False),
    ]
    assert not wants_sessions(SOUTH)
    drop_a_migrated_app(SOUTH)
    with lagging(NORTH):  # its tables are there already, so that this migration fails
        called = durable("planes", "migrate", "--json")
    assert called.code == 1
    assert called.error == "not migrated: north"
    assert "already exists" in called.data[0]["error"]
    assert called.data[0]["unavailable"] is False
    assert not wants_sessions(SOUTH)


def test_a_closed_plane_is_migrated_only_by_name() -> None:
    assert durable("planes", "close", "south", "--force").code == 0
    assert [row["plane"] for row in durable("planes", "migrate", "--json").data] == ["north"]
    assert [row["plane"] for row in durable("planes", "migrate", "south", "--json").data] == ["south"]
