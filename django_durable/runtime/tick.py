"""tick: what must happen now and then, whoever does it. It never runs user code."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime

from django.db import connections

from django_durable.clock import sql_after, sql_now
from django_durable.ids import process_identity
from django_durable.models import SweepClaim
from django_durable.planes.selection import spine_alias
from django_durable.runtime import sweeps
from django_durable.sql import assignments, build, fetch, field_of, insert_row, value

TICK = "tick"

# Seconds between two passes of a sweep, over all processes together, give or take a fifth.
INTERVALS: dict[str, tuple[float, Callable[[str], int]]] = {
    "unknown": (2.0, sweeps.block_unknown),
    "letters": (3600.0, sweeps.write_missing_letters),
    "dangling": (120.0, sweeps.drop_dangling_hints),
    "rebuild": (180.0, sweeps.rebuild_hints),
}


def tick(*, rebuild: bool = False) -> dict[str, int]:
    """Run the sweeps whose turn it is; what each changed. ``rebuild`` does that sweep at once, to its end."""
    using = spine_alias()
    claim_pass_of(using, TICK, 0.5)
    done: dict[str, int] = {}
    for name, (interval, sweep) in INTERVALS.items():
        if name == "rebuild" and rebuild:
            done[name] = sweeps.rebuild_everything(using)
        elif claim_pass_of(using, name, interval * random.uniform(0.8, 1.2)):
            done[name] = sweep(using)
    return done


def claim_pass_of(using: str, name: str, interval: float) -> bool:
    """Whether this process has the next pass of a sweep: one conditional update, any number may try."""
    connection = connections[using]
    now = sql_now(connection)
    mine = {"due_at": sql_after(connection, interval), "ran_at": now, "worker": process_identity()}
    table = SweepClaim._meta.db_table
    wanted = build("name = {name} AND plane = ''", name=value(connection, field_of(SweepClaim, "name"), name))
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
        {"name": name, "plane": "", **mine},
        on_conflict="ON CONFLICT DO NOTHING RETURNING id",
    )
    return bool(fetch(using, first._replace(text=first.text.replace("{guard}", "1 = 1"))))


def last_tick(using: str) -> datetime | None:
    """When anything last ticked."""
    return SweepClaim.objects.using(using).filter(name=TICK).values_list("ran_at", flat=True).first()
