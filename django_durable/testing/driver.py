"""Driver: claims and turns, one after the other, in the test's own thread and connection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps

from django_durable.authoring.schedule import Declared, declared_schedules
from django_durable.clock import read_now
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions import leave
from django_durable.engine.transitions.hint_lease import Terms
from django_durable.engine.transitions.leave import Pages
from django_durable.models import Checkpoint, DispatchHint, Execution
from django_durable.operators.schedules.declaring import declare_all
from django_durable.planes.selection import spine_alias
from django_durable.runtime.claim_run import run_claim
from django_durable.runtime.claiming import claim_pass, terms_of
from django_durable.runtime.schedule_sweeps import fire_due
from django_durable.runtime.tick import INTERVALS
from django_durable.testing.autocommit import pretended_autocommit
from django_durable.testing.clockwork import Clockwork, SkippedPauses, UnwatchedLease
from django_durable.testing.crash import CrashedTurn, doomed
from django_durable.testing.places import usable_databases
from django_durable.testing.timeline import Skip, check_skip, next_moment, nothing_is_live, schedules_ahead

# What mends lost hints and letters: an intent which nobody wrote shows at the end of the test. What makes rows of
# declared schedules: a project's nightly job is no part of a test that is not about it. And what would take away from
# a test the executions that it is about.
LEFT_OUT = frozenset({"rebuild", "steps", "parents", "dangling", "letters", "schedules", "retention"})
# SQLite's clock counts milliseconds.
ROUNDING = timedelta(milliseconds=2)


class Driver:
    """Does what a fleet of workers and their sweeps do, until nothing is left to do."""

    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork = clockwork
        self._deaths = 0
        self._known: list[Declared] = []
        self.crashes: list[CrashedTurn] = []
        self.waits: list[tuple[str, Callable[[Execution[Any]], object]]] = []

    def open(self) -> None:
        """Remember which schedules the project has."""
        self._known = list(declared_schedules().values())

    def run_until_idle(self, skip: Skip, max_turns: int) -> int:
        """Run turns and move the clock until idle; the number of turns. See ``DurableKit.run_until_idle``."""
        check_skip(skip)
        using = spine_alias()
        databases = usable_databases()
        turns, moved = 0, False
        ahead: list[datetime] = []
        while True:
            # What falls due from here on, while the claims look, is still to come.
            since = read_now(using)
            while (claim := self._claim(using)) is not None:
                if turns == max_turns:
                    _refuse(claim, max_turns)
                turns += 1
                self._run(claim, skip)
            if self._sweep(databases):
                continue
            moment = next_moment(using, skip, since)
            if moment is None and skip is not None and turns == 0 and not moved and nothing_is_live(databases):
                self.declare(self._is_the_tests_own)
                ahead = schedules_ahead(databases)
            moments = [*([moment] if moment is not None else []), *(at for at in ahead if at > read_now(using))]
            if not moments:
                return turns
            moved = True
            self._clockwork.advance(max(timedelta(), min(moments) - read_now(using)) + ROUNDING)

    def declare(self, wanted: Callable[[Declared], bool] = lambda declared: True) -> None:
        """Store what the code declares, so that its times are counted from now on."""
        if any(map(wanted, declared_schedules().values())):
            with pretended_autocommit():
                for using in usable_databases():
                    declare_all(using, wanted=wanted)

    def _is_the_tests_own(self, declared: Declared) -> bool:
        """Declared since the test began, or outside the project's apps: what the test is about."""
        module = declared.workflow.func.__module__
        return declared not in self._known or apps.get_containing_app_config(module) is None

    def _claim(self, using: str) -> Claimed | None:
        """The next execution that is due, as a worker would claim it; a blocked one only for other code."""
        for blocked in (False, True):
            touched = 1
            while touched:
                with pretended_autocommit():
                    claims, touched = claim_pass(using, self._terms(using, blocked))
                if claims:
                    return claims[0]
        return None

    def _terms(self, using: str, blocked: bool) -> Terms:
        state = DispatchHint.State.BLOCKED if blocked else DispatchHint.State.LIVE
        queues = DispatchHint.objects.using(using).filter(state=state).order_by().values_list("queue", flat=True)
        terms = terms_of(limit=1, queues=tuple(queues.distinct()), blocked=blocked)
        return replace(terms, worker=f"{terms.worker}+{self._deaths}") if self._deaths else terms

    def _run(self, claim: Claimed, skip: Skip) -> None:
        lease = UnwatchedLease(claim, self._clockwork)
        stop = None if skip is None else SkippedPauses(self._clockwork, lease)
        alive = [crash for crash in self.crashes if crash.armed]
        with pretended_autocommit():
            with self._clockwork.during(claim), doomed(alive):
                run_claim(claim, lease, stop)
            if lease.overran is not None:
                lease.overran()
            if any(crash.happened for crash in alive):
                self._bury_process(claim)
        self._tell(claim)

    def _bury_process(self, claim: Claimed) -> None:
        """The dead worker's lease has lapsed; the clock stays, so that no timer runs out over it."""
        spine = spine_alias()
        hints = DispatchHint.objects.using(spine).filter(pk=claim.hint_id, token=claim.token)
        hints.update(due_at=read_now(spine))
        self._deaths += 1

    def _sweep(self, databases: Sequence[str]) -> int:
        with pretended_autocommit():
            sweeps = [sweep for name, (_interval, sweep) in INTERVALS.items() if name not in LEFT_OUT]
            return sum(sweep(using) for sweep in (*sweeps, fire_due) for using in databases)

    # -- waits ---------------------------------------------------------------------------------------------------

    def _tell(self, claim: Claimed) -> None:
        """Call what was registered for the names that this execution has just begun to wait for."""
        if not self.waits:
            return
        execution: Execution[Any] | None = Execution._base_manager.using(claim.using).filter(pk=claim.id).first()
        if execution is None or execution.status not in ("waiting", "paused"):
            return
        names = _awaited(execution)
        for name, function in tuple(self.waits):
            if name in names:
                function(execution)


def _awaited(execution: Execution[Any]) -> set[str]:
    """The names that it waits for; a paused execution waits at a breakpoint or for nothing of interest."""
    pending = Checkpoint.objects.using(execution.using).filter(execution_id=execution.pk, status="pending")
    if execution.status == "paused":
        return set(pending.filter(kind="breakpoint").values_list("name", flat=True))
    names = set(pending.values_list("name", flat=True))
    for channel in json.loads(execution.awaiting or "[]"):
        if not isinstance(channel, str):
            continue  # what runs elsewhere has no name that somebody outside would know
        kind, _, name = channel.partition(":")
        names |= set(_made_at(execution, name)) if kind == "callback" else {name}
    return names


def _made_at(execution: Execution[Any], place: str) -> Iterable[str]:
    """The name of a callback, which stands where it was made."""
    rows = Checkpoint.objects.using(execution.using).filter(execution_id=execution.pk)
    return rows.filter(position=int(place.partition(":")[0])).values_list("name", flat=True)


def _refuse(claim: Claimed, max_turns: int) -> None:
    with pretended_autocommit():
        leave.release(claim, Pages())
    raise AssertionError(
        f"not idle after {max_turns} turns (max_turns); next in line is execution {claim.id} of workflow"
        f" {claim.row['workflow']!r}: does it loop without an end?"
    )
