"""tick: what must happen now and then, whoever does it. It never runs user code."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime

from django.db import connections

from django_durable.clock import sql_after, sql_now
from django_durable.database_errors import is_disconnect
from django_durable.ids import process_identity
from django_durable.models import SweepClaim
from django_durable.planes.behind import lags
from django_durable.planes.breaker import available, guarded
from django_durable.planes.places import Place, all_places
from django_durable.planes.registry import all_planes
from django_durable.planes.selection import spine_alias
from django_durable.quiet import report
from django_durable.runtime import event_sweeps, flow_sweeps, schedule_sweeps, sweeps
from django_durable.runtime.gathering import start_gathered
from django_durable.runtime.retention import prune_ended
from django_durable.runtime.unknown_work import block_unknown
from django_durable.sql import assignments, build, fetch, field_of, insert_row, value

TICK = "tick"

# Seconds between two passes of a sweep, over all processes together, give or take a fifth.
INTERVALS: dict[str, tuple[float, Callable[[str], int]]] = {
    "outbox": (1.0, sweeps.relay_outbox),
    "unknown": (2.0, block_unknown),
    "letters": (3600.0, sweeps.write_missing_letters),
    "dangling": (120.0, sweeps.drop_dangling_hints),
    "actions": (300.0, sweeps.copy_missing_actions),
    "routes": (600.0, sweeps.drop_unused_routes),
    "rebuild": (180.0, sweeps.rebuild_hints),
    "steps": (180.0, sweeps.rebuild_steps),
    "parents": (180.0, sweeps.wake_parents),
    "events": (1.0, event_sweeps.tell_of_events),
    "old events": (60.0, event_sweeps.forget_events),
    "singletons": (5.0, flow_sweeps.admit_to_singletons),
    "queues": (60.0, flow_sweeps.look_at_queues),
    "event waits": (600.0, event_sweeps.drop_ended_waits),
    "schedules": (1.0, schedule_sweeps.fire_schedules),
    "old fires": (600.0, schedule_sweeps.forget_fires),
    "gathered": (1.0, start_gathered),
    "retention": (10.0, prune_ended),
}


def tick(*, rebuild: bool = False) -> dict[str, int]:
    """Run the sweeps whose turn it is on every plane; what each changed. ``rebuild`` runs that one to its end.

    Each plane and each sweep in an error boundary of its own: a plane that cannot be reached is left alone by its
    breaker, one that lacks migrations until it has them. Raises only where the spine cannot be reached.
    """
    spine = spine_alias()
    claim_pass_of(spine, TICK, 0.5)
    done: dict[str, int] = {}
    for place in places():
        if not available(place.alias):
            continue
        try:
            with guarded(place.alias):
                plane = all_planes().get(place.plane)
                if place.is_spine or (plane is not None and not lags(plane)):
                    _sweep_plane(spine, place.plane, place.alias, done, rebuild=rebuild)
        except Exception as error:
            if is_disconnect(error):  # a plane's outage is told by its breaker
                if place.is_spine:
                    raise
            else:
                report(error, "the sweeps of data plane %r failed", place.plane)
    return done


def places() -> list[Place]:
    """Every place that is swept, in random order so that none is always the last."""
    found = [place for place in all_places() if not place.is_closed and place.alias in connections.settings]
    random.shuffle(found)
    return found


def _sweep_plane(spine: str, name: str, alias: str, done: dict[str, int], *, rebuild: bool) -> None:
    for sweep, (interval, run) in INTERVALS.items():
        if sweep == "rebuild" and rebuild:
            run = sweeps.rebuild_everything
        elif not claim_pass_of(spine, sweep, interval * random.uniform(0.8, 1.2), name):
            continue
        try:
            done[sweep] = done.get(sweep, 0) + run(alias)
        except Exception as error:
            if is_disconnect(error):
                raise
            report(error, "sweep %r of data plane %r failed; the others go on", sweep, name)


def claim_pass_of(using: str, name: str, interval: float, plane: str = "") -> bool:
    """Whether this process has the next pass of a sweep: one conditional update, any number may try."""
    connection = connections[using]
    now = sql_now(connection)
    mine = {"due_at": sql_after(connection, interval), "ran_at": now, "worker": process_identity()}
    table = SweepClaim._meta.db_table
    wanted = build(
        "name = {name} AND plane = {plane}",
        name=value(connection, field_of(SweepClaim, "name"), name),
        plane=value(connection, field_of(SweepClaim, "plane"), plane),
    )
    due = fetch(using, build(f"SELECT due_at <= {{now}} FROM {table} WHERE {{wanted}}", now=now, wanted=wanted))
    if due and not due[0][0]:
        return False
    if due:
        statement = build(
            f"UPDATE {table} SET {{mine}} WHERE {{wanted}} AND due_at <= {{now}} RETURNING id",
            mine=assignments(connection, SweepClaim, mine),
            wanted=wanted,
            now=now,
        )
        return bool(fetch(using, statement))
    first = insert_row(
        connection,
        SweepClaim,
        {"name": name, "plane": plane, **mine},
        on_conflict="ON CONFLICT DO NOTHING RETURNING id",
    )
    return bool(fetch(using, first._replace(text=first.text.replace("{guard}", "1 = 1"))))


def last_tick(using: str) -> datetime | None:
    """When anything last ticked."""
    return SweepClaim.objects.using(using).filter(name=TICK).values_list("ran_at", flat=True).first()
