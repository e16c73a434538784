"""Make the rows agree with what this code declares: once for each change of a declaration, never against operators.

A declaration becomes a row when it is first seen. Later the row is the truth, and operators may change it. Only a
declaration whose digest differs from the one that the row was last made to agree with is written again: the code
wins then, but for a pause, which is the operators' alone. A row whose declaration has gone stays, and is not fired.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from django.db import transaction
from django.db.models import Q

from django_durable.authoring.schedule import Declared, declared_schedules
from django_durable.clock import read_now
from django_durable.conf import config
from django_durable.errors import DurableError, TenantRequired
from django_durable.models import Schedule
from django_durable.operators.schedules.insert import change, held, insert_schedule
from django_durable.operators.schedules.rows import policy_columns, timing_columns
from django_durable.payloads import encode, encode_plain
from django_durable.planes.selection import plane_alias, spine_alias
from django_durable.quiet import report

__all__ = ["declare_all", "forget_declared", "is_mine", "may_be_fired"]

AGAIN_SECONDS = 300.0
"""Two deployments side by side that declare differently write over each other no more often than this."""

Identity = tuple[str, str]

_written: dict[tuple[str, Identity], tuple[str, float]] = {}
_told: set[Identity] = set()


def may_be_fired() -> Q:
    """The rows that this process may fire, and few others: operators' own, and those that its code declares."""
    return Q(declared="") | Q(name__in={name for _tenant, name in declared_schedules()})


def is_mine(schedule: Schedule) -> bool:
    """Whether this process may fire it: code that no longer declares a schedule leaves it alone."""
    return not schedule.declared or (schedule.tenant, schedule.name) in declared_schedules()


def declare_all(using: str, *, wanted: Callable[[Declared], bool] = lambda declared: True) -> int:
    """Insert and change the rows of one plane; how many. One query where everything agrees."""
    declared = {identity: one for identity, one in declared_schedules().items() if wanted(one)}
    if not declared:
        return 0
    names = {name for _tenant, name in declared}
    rows = {(row.tenant, row.name): row for row in Schedule.objects.using(using).filter(name__in=names)}
    changed = 0
    for identity, one in declared.items():
        try:
            changed += _agree(using, one, rows.get(identity))
        except (DurableError, TypeError, ValueError) as error:
            if identity not in _told:
                _told.add(identity)
                report(error, "schedule %r of the code could not be stored", one.name)
    return changed


def _agree(using: str, declared: Declared, row: Schedule | None) -> int:
    if row is None and not _lives_here(using, declared):
        return 0
    where = f"input of workflow {declared.workflow.name!r}"
    # Before any codec: the text of one that encrypts is another one each time.
    digest = declared.digest(encode_plain(dict(declared.arguments), where=where))
    encoded = encode(dict(declared.arguments), where=where)
    if row is None:
        now = read_now(using)
        which = (using, now, declared.identity, declared.workflow.name, encoded)
        with transaction.atomic(using=using):
            return int(insert_schedule(*which, declared.timing, declared.policy, declared=digest))
    if row.declared == digest or row.moving or _just_written(using, declared.identity, digest):
        return 0
    columns = {
        "workflow": declared.workflow.name,
        "encoded_input": encoded,
        **timing_columns(declared.timing),
        **policy_columns(declared.policy),
        "declared": digest,
    }
    return int(_write(row, digest, columns))


def _lives_here(using: str, declared: Declared) -> bool:
    """Whether this is the plane of its tenant. Raises ``TenantRequired``, ``UnknownTenant``."""
    if declared.tenant:
        return plane_alias(declared.tenant) == using
    if using == spine_alias() and config().untenanted == "refuse":
        raise TenantRequired(f"schedule {declared.name!r} is declared without a tenant")
    return using == spine_alias()


def _just_written(using: str, identity: Identity, digest: str) -> bool:
    known = _written.get((using, identity))
    return known is not None and known[0] == digest and time.monotonic() - known[1] < AGAIN_SECONDS


def _write(row: Schedule, digest: str, columns: Mapping[str, object]) -> bool:
    using, before = row.using, row.declared
    with held(row) as found:
        if found.row.declared != before:
            return False  # another process was first
        change(using, found.row, found.now, columns)
    _written[using, (row.tenant, row.name)] = (digest, time.monotonic())
    return True


def forget_declared() -> None:
    """Look at everything anew: the databases are other ones."""
    _written.clear()
    _told.clear()
