"""``list``, ``dead-letters``, ``approvals``, ``check-replay``, ``stats``: all planes, one of them, or one tenant's; a dead one is told, not hidden."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connections

from django_durable import Context, Execution, PlaneUnavailable, workflow
from django_durable.models import DispatchHint, ExecutionRoute
from django_durable.operators.planes import close_plane
from django_durable.planes.places import ask, place_on
from django_durable.sql import Sql, fetch
from tests.calling import durable
from tests.driving import claim, drain
from tests.planes.conftest import NORTH, SOUTH, SPINE
from tests.planes.faults import down, lacking_a_table, locked

pytestmark = pytest.mark.usefixtures("planes")


@workflow("all_planes.flow")
def flow(ctx: Context, then: str) -> None:
    if then == "fail":
        raise ValueError("no")
    if then == "sleep":
        ctx.sleep(3600)
    elif then == "ask":
        ctx.wait_for_approval("legal")
    else:
        ctx.wait_for_signal("go")


def make(count: int, then: str = "wait") -> list[Execution[Any]]:
    """On both planes by turns, in the order of their ids, the newest first."""
    tenants = ("ann", "cid", "bob")
    made = [flow.using(tenant=tenants[number % 3], key=f"k{number}").start(then) for number in range(count)]
    return sorted(made, key=lambda one: one.pk, reverse=True)


def ids(*options: Any) -> list[str]:
    called = durable("list", "--json", *options)
    assert called.code == 0, called.error
    return [row["id"] for row in called.data]


def test_list_pages_over_all_planes_newest_first() -> None:
    made = [str(one.pk) for one in make(7)]
    first = durable("list", "--limit", "3", "--json")
    assert [row["id"] for row in first.data] == made[:3]
    assert first.err == f"there are more: --after {made[2]}\n"
    assert ids("--limit", "3", "--after", made[2]) == made[3:6]
    assert ids("--limit", "3", "--after", made[5]) == made[6:]


def test_list_narrows_to_a_plane_or_a_tenant_and_names_the_plane() -> None:
    made = make(6)
    north = [str(one.pk) for one in made if one.using == NORTH]
    assert ids("--plane", "north") == north
    assert ids("--tenant", "cid") == [str(one.pk) for one in made if one.tenant == "cid"]
    assert ids("--tenant", "bob", "--plane", "south") == []
    assert ids("--plane", SPINE) == []
    rows = durable("list", "--json").data
    assert {(row["tenant"], row["plane"]) for row in rows} == {("ann", "north"), ("bob", "north"), ("cid", "south")}
    head, *lines = durable("list").out.splitlines()
    assert head.split()[0] == "PLANE"
    assert {line.split()[0] for line in lines} == {"north", "south"}
    for verb in ("list", "dead-letters"):
        unknown = durable(verb, "--plane", "west")
        assert (unknown.code, unknown.out, "'west'" in unknown.error) == (3, "", True)
        assert durable(verb, "--tenant", "nobody").code == 3


def test_a_dead_plane_is_told_and_the_others_are_shown() -> None:
    made = make(4, "fail")
    drain()
    alive = {str(one.pk) for one in made if one.using == SOUTH}
    with down(NORTH):
        listed, letters, stats = (durable(verb, "--json") for verb in ("list", "dead-letters", "stats"))
        only_north = durable("list", "--plane", "north")
        only_south = durable("list", "--plane", "south")
    for called in (listed, letters, stats):
        assert called.code == 4
        assert "north: database 'north' is unavailable" in called.error
    assert {row["id"] for row in listed.data} == alive
    assert {row["execution_id"] for row in letters.data} == alive
    assert stats.data["statuses"]["failed"] == len(alive)
    assert set(stats.data["planes"]) == {SPINE, "south"}
    assert (only_north.code, only_south.code) == (4, 0)


@pytest.mark.parametrize("verb", ["list", "dead-letters", "stats", "approvals", "check-replay"])
def test_a_plane_with_a_trouble_of_its_own_is_told_and_the_others_are_shown(verb: str) -> None:
    make(2)
    with locked(NORTH, {"dead-letters": "django_durable_deadletter"}.get(verb, "django_durable_execution")):
        called = durable(verb, "--json")
    assert called.code == 4
    assert "north: database 'north' refused to answer: " in called.error
    assert called.data is not None


def test_doctor_names_a_plane_with_a_trouble_of_its_own() -> None:
    make(2)
    with locked(NORTH):
        called = durable("doctor", "--json")
    assert called.code == 5
    assert "plane-unreachable" in called.error


def test_an_execution_is_found_beside_a_plane_with_a_trouble_of_its_own() -> None:
    made = make(2)
    north, south = (next(one for one in made if one.using == alias) for alias in (NORTH, SOUTH))
    ExecutionRoute.objects.all().delete()
    with locked(NORTH):
        assert Execution.objects.locate(south.pk).pk == south.pk
        with pytest.raises(PlaneUnavailable):
            Execution.objects.locate(north.pk)


def test_a_statement_that_is_wrong_on_a_plane_is_a_bug_and_no_trouble_of_the_plane() -> None:
    with pytest.raises(DatabaseError):
        ask([place_on(NORTH)], lambda place: fetch(place.alias, Sql("SELECT no_such_column", ())))


def test_a_closed_plane_is_shown_by_name_only() -> None:
    made = make(3)
    south = [str(one.pk) for one in made if one.using == SOUTH]
    close_plane("south", actor="op", force=True)
    assert set(ids()).isdisjoint(south)
    assert ids("--plane", "south") == south


def all_pages(verb: str, limit: int) -> list[dict[str, Any]]:
    """Every row, a page at a time as stderr says."""
    rows: list[dict[str, Any]] = []
    after: list[str] = []
    for _ in range(10):
        called = durable(verb, "--json", "--limit", str(limit), *after)
        assert called.code == 0
        rows += called.data
        if not called.err:
            break
        after = ["--after", called.err.split("--after ")[1].strip()]
    return rows


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_approvals_of_all_planes_are_listed_page_by_page(limit: int) -> None:
    expected = {str(one.pk): one.using for one in make(5, "ask")}
    drain()
    rows = all_pages("approvals", limit)
    assert {row["execution_id"]: row["plane"] for row in rows} == expected
    assert len(rows) == 5
    if limit == 50:
        assert rows == sorted(rows, key=lambda row: row["requested_at"])
        assert durable("approvals").out.startswith("PLANE")


def test_approvals_narrow_to_a_plane_or_a_tenant_and_tell_a_dead_plane() -> None:
    make(4, "ask")
    drain()
    south = durable("approvals", "--plane", "south", "--json")
    assert {row["tenant"] for row in south.data} == {"cid"}
    assert {row["tenant"] for row in durable("approvals", "--tenant", "bob", "--json").data} == {"bob"}
    with down(NORTH):
        partly = durable("approvals", "--json")
    assert (partly.code, "north: database 'north' is unavailable" in partly.error) == (4, True)
    assert partly.data == south.data


def test_check_replay_reads_the_histories_of_all_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(4)
    drain()
    assert durable("check-replay", "--json").data == {"checked": 4, "findings": []}
    assert durable("check-replay", "--plane", "south", "--json").data["checked"] == 1
    assert durable("check-replay", "--tenant", "ann", "--json").data["checked"] == 2
    monkeypatch.setattr(flow, "func", lambda ctx, then: ctx.sleep(1))
    called = durable("check-replay", "--json")
    assert called.code == 5
    assert {row["id"] for row in called.data["findings"]} == {str(one.pk) for one in made}


def test_check_replay_never_passes_over_a_plane_that_gives_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    make(4)
    drain()
    with down(NORTH):
        called = durable("check-replay", "--json")
        assert (called.code, called.data) == (4, {"checked": 1, "findings": []})
        assert "north: database 'north' is unavailable" in called.error
        monkeypatch.setattr(flow, "func", lambda ctx, then: ctx.sleep(1))
        called = durable("check-replay", "--json")
        assert (called.code, len(called.data["findings"])) == (5, 1)
        assert "north: database 'north' is unavailable" in called.err


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_dead_letters_page_over_all_planes_without_loss_or_repetition(limit: int) -> None:
    expected = {str(one.pk) for one in make(7, "fail")}
    drain()
    seen = [row["execution_id"] for row in all_pages("dead-letters", limit)]
    assert sorted(seen) == sorted(expected)
    assert len(seen) == 7


def test_dead_letters_of_one_plane_page_by_number_and_narrow_to_a_tenant() -> None:
    make(6, "fail")
    drain()
    first = durable("dead-letters", "--plane", "north", "--limit", "1", "--json")
    assert first.err == f"there are more: --after {first.data[0]['id']}\n"
    rest = durable("dead-letters", "--plane", "north", "--after", str(first.data[0]["id"]), "--json")
    assert len(rest.data) == 3
    assert {row["tenant"] for row in durable("dead-letters", "--tenant", "bob", "--json").data} == {"bob"}
    assert {row["plane"] for row in durable("dead-letters", "--json").data} == {"north", "south"}
    assert durable("dead-letters").out.startswith("PLANE")
    for wrong in ("0", "12", "north:x", ":5", "north:5,"):
        assert durable("dead-letters", "--after", wrong).code == 2


def test_a_plane_that_comes_back_is_paged_from_where_it_was() -> None:
    expected = {str(one.pk) for one in make(6, "fail")}
    drain()
    first = durable("dead-letters", "--json", "--limit", "2")
    after = first.err.split("--after ")[1].strip()
    with down(NORTH):
        second = durable("dead-letters", "--json", "--limit", "1", "--after", after)
    assert second.code == 4
    told = [line for line in second.err.splitlines() if "--after " in line]
    after = told[0].split("--after ")[1] if told else after
    third = durable("dead-letters", "--json", "--after", after)
    seen = [row["execution_id"] for called in (first, second, third) for row in called.data]
    assert set(seen) >= expected


def test_stats_are_sums_with_each_planes_own_numbers() -> None:
    for tenant, then in (("ann", "sleep"), ("ann", "fail"), ("bob", "wait"), ("cid", "sleep"), ("cid", "sleep")):
        flow.using(tenant=tenant).start(then)
    drain()
    for tenant in ("ann", "cid", "cid"):
        flow.using(tenant=tenant).start("wait")
    claim(limit=1)
    parked = flow.using(tenant="cid").start("sleep")
    DispatchHint.objects.filter(execution_id=parked.pk).update(state=DispatchHint.State.PARKED)

    stats = durable("stats", "--json").data
    planes = stats["planes"]
    assert set(planes) == {SPINE, "north", "south"}
    for name in ("ready", "running", "sleeping", "blocked", "parked", "unpublished", "open_dead_letters"):
        assert stats[name] == sum(one[name] for one in planes.values()), name
    assert stats["statuses"] == {
        status: sum(one["statuses"][status] for one in planes.values()) for status in stats["statuses"]
    }
    assert (stats["ready"], stats["running"], stats["sleeping"]) == (2, 1, 3)
    assert (planes["north"]["sleeping"], planes["south"]["sleeping"]) == (1, 2)
    assert (planes["north"]["open_dead_letters"], planes["south"]["open_dead_letters"]) == (1, 0)
    assert (planes["north"]["parked"], planes["south"]["parked"]) == (0, 1)
    assert planes[SPINE]["ready"] == 0
    assert planes[SPINE]["oldest_ready_seconds"] is None


def test_each_plane_has_its_own_oldest_work() -> None:
    north, south = (flow.using(tenant=tenant).start("wait") for tenant in ("ann", "cid"))
    DispatchHint.objects.filter(execution_id=south.pk).update(due_at="2020-01-01T00:00:00Z")
    stats = durable("stats", "--json").data
    assert stats["oldest_ready_seconds"] == pytest.approx(stats["planes"]["south"]["oldest_ready_seconds"], abs=5)
    assert 0 <= stats["planes"]["north"]["oldest_ready_seconds"] < 60
    head = next(line for line in durable("stats").out.splitlines() if line.startswith("PLANE"))
    assert head.split()[1] == "READY"
    assert north.pk != south.pk


def test_work_of_a_plane_that_nobody_knows_is_counted_too() -> None:
    parked, ready, sleeping = (flow.using(tenant="cid").start("wait") for _ in range(3))
    hints = DispatchHint.objects
    hints.filter(execution_id=parked.pk).update(plane="gone", state=DispatchHint.State.PARKED)
    hints.filter(execution_id=ready.pk).update(plane="gone", due_at="2020-01-01T00:00:00Z")
    hints.filter(execution_id=sleeping.pk).update(plane="gone", due_at="2999-01-01T00:00:00Z")
    stats = durable("stats", "--json").data
    assert (stats["parked"], stats["ready"], stats["sleeping"]) == (1, 1, 1)
    assert stats["oldest_ready_seconds"] > 1_000_000
    assert {one["ready"] for one in stats["planes"].values()} == {0}


def test_a_closed_plane_is_left_out_also_after_its_alias_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    for then in ("wait", "sleep"):
        flow.using(tenant="cid").start(then)
    flow.using(tenant="cid").start("wait")
    DispatchHint.objects.update(due_at="2020-01-01T00:00:00Z")
    flow.using(tenant="ann").start("wait")
    close_plane("south", actor="op", force=True)
    with monkeypatch.context() as patch:
        patch.delitem(connections.settings, SOUTH)
        called, examined = durable("stats", "--json"), durable("doctor", "--json")
    assert (called.code, called.error) == (0, "")
    assert set(called.data["planes"]) == {SPINE, "north"}
    assert called.data["ready"] == 1
    assert called.data["oldest_ready_seconds"] < 60
    assert [found["code"] for found in examined.data["findings"]] == ["closed-plane"]


def test_one_planes_backlog_hides_no_other_planes(monkeypatch: pytest.MonkeyPatch) -> None:
    flow.using(tenant="cid").start("wait")
    for _ in range(5):
        flow.using(tenant="ann").start("wait")
    assert durable("stats", "--json").data["at_least"] == []
    monkeypatch.setattr("django_durable.operators.stats.MOST_COUNTED", 3)
    planes = durable("stats", "--json").data["planes"]
    assert [planes[name]["at_least"] for name in ("north", "south")] == [["ready"], ["ready"]]
    assert planes["north"]["oldest_ready_seconds"] is None
    assert planes["north"]["ready"] + planes["south"]["ready"] == 3
    row = next(line for line in durable("stats").out.splitlines() if line.startswith("south"))
    assert row.split()[1:3] == [f"{planes['south']['ready']}+", "?"]


@pytest.mark.parametrize("verb", ["show", "history", "signal", "pause", "resume", "cancel", "retry"])
def test_a_verb_on_an_execution_finds_it_on_its_plane(verb: str) -> None:
    execution = flow.using(tenant="cid").start("fail" if verb == "retry" else "wait")
    drain()
    if verb == "resume":
        Execution.objects.locate(execution.pk).pause(actor="op")
    arguments = [verb, str(execution.pk), *(["go"] if verb == "signal" else [])]
    called = durable(*arguments, "--json")
    assert called.code == 0
    if verb == "show":
        assert called.data["plane"] == "south"
    with down(SOUTH):
        refused = durable(*arguments)
    assert (refused.code, refused.out) == (4, "")


def test_the_database_that_is_blamed_is_the_one_that_is_away() -> None:
    execution = flow.using(tenant="cid").start("wait")
    with lose_once(SOUTH, "django_durable_checkpoint"):
        called = durable("history", execution.pk)
    assert (called.code, called.error) == (4, "a database is unavailable: server closed the connection unexpectedly")
    with down(SPINE):
        called = durable("stats")
    assert called.code == 4
    assert called.error.startswith(f"database {SPINE!r} is unavailable: ")


def test_a_verb_on_a_plane_that_lacks_migrations_says_so() -> None:
    with lacking_a_table(SOUTH):
        called = durable("start", "all_planes.flow", "--tenant", "cid", "--input", '{"then": "wait"}')
    assert called.code == 4
    assert called.error == "database 'south' lacks 1 migration(s); run: manage.py durable planes migrate south"


@contextmanager
def lose_once(alias: str, table: str) -> Iterator[None]:
    """The next statement on this table meets a connection that was lost; the database itself is there."""
    lost: list[str] = []

    def lose(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if table in sql and not lost:
            lost.append(sql)
            raise OperationalError("server closed the connection unexpectedly")
        return execute(sql, params, many, context)

    with connections[alias].execute_wrapper(lose):
        yield
