"""The sweep is only worth something if it fails for an engine that is wrong: six engines that are."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from django_durable.dispatch import hints
from django_durable.dispatch.hints import Intent, insert_hint
from django_durable.dispatch.spine_work import SpineWork
from django_durable.engine import journal, messages
from django_durable.engine.claimed import Claimed
from django_durable.engine.transitions import epoch, leave
from django_durable.engine.transitions.leave import Pages
from django_durable.models import Execution
from django_durable.sql import Sql, execute, fetch
from tests.crash.faults import Fault, Mode
from tests.crash.harness import Harness
from tests.crash.life import Violation
from tests.crash.scenarios import scenario
from tests.db.racing import Transaction, append, claim_one, lapsed, racers, take_over, waiter
from tests.db.racing import journal as read_journal
from tests.driving import lapse_leases
from tests.services.project import Project


def _replace(monkeypatch: pytest.MonkeyPatch, original: Callable[..., Any], other: Callable[..., Any]) -> None:
    """In every module that has imported it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("django_durable") and getattr(module, original.__name__, None) is original:
            monkeypatch.setattr(module, original.__name__, other)


def test_without_the_token_in_the_fence_the_sweep_fails(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = journal.fence

    def without_token(claim: Claimed, **options: Any) -> Sql:
        whole = fence(claim, **options)
        text = re.sub(r" AND e\.lease_token = %s(::uuid)?", "", whole.text)
        assert text != whole.text
        return Sql(text, (whole.params[0], *whole.params[2:]))

    _replace(monkeypatch, fence, without_token)
    swept = harness.sweep(scenario("three_steps"), (Mode.HALF_OVERTAKEN,))

    assert any("a thawed worker began more bodies" in violation for violation in swept.violations)


def test_a_wake_that_is_published_before_the_commit_fails_the_sweep(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = messages._post

    def publish_and_send(using: str, execution_id: UUID, *args: Any, **kwargs: Any) -> Any:
        row = Execution.objects.using(using).get(pk=execution_id)
        if row.status == "waiting":
            names = ("workflow", "version", "epoch", "queue", "priority")
            more = {name: getattr(row, name) for name in names}
            intent = Intent(execution_id=row.pk, revision=row.revision + 1, **more)
            execute(using, insert_hint(connections[using], intent))
        return send(using, execution_id, *args, **kwargs)

    class AlreadyPublished(SpineWork):
        def publish(self, intent: Intent, *, first: bool = False) -> SpineWork:
            return self

    monkeypatch.setattr(messages, "_post", publish_and_send)
    monkeypatch.setattr(messages, "SpineWork", AlreadyPublished)
    swept = harness.sweep(scenario("signal_after_the_wait"), (Mode.FROZEN,))

    assert any("it has no live hint" in violation for violation in swept.violations)


def test_a_publication_that_touches_a_leased_hint_fails_the_sweep(
    far_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_stored_hint = hints.insert_stored_hint

    def anew(*args: Any, **kwargs: Any) -> Sql:
        whole = insert_stored_hint(*args, **kwargs)
        fresh = (
            "ON CONFLICT (execution_id, revision, position, item)"
            " DO UPDATE SET token = NULL, owner = '', due_at = excluded.due_at"
        )
        assert whole.text.endswith("ON CONFLICT DO NOTHING")
        return Sql(whole.text.replace("ON CONFLICT DO NOTHING", fresh), whole.params)

    _replace(monkeypatch, insert_stored_hint, anew)
    swept = far_harness.sweep(scenario("intent_published_again_under_a_live_lease"), (Mode.KILLED_BEFORE,))

    assert any("a live lease was taken away" in violation for violation in swept.violations)


def _keep_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bump that stamps the epoch and leaves the turn in flight its token."""

    def fetch_without(using: str, statement: Sql) -> Any:
        text = statement.text
        if "lease_token = NULL" in text:
            text = re.sub(r" lease_token = NULL,.* END,", "", text)
            assert "lease_token = NULL" not in text
        return fetch(using, Sql(text, statement.params))

    monkeypatch.setattr(epoch, "fetch", fetch_without)


def test_without_epoch_and_token_in_the_fence_a_bump_stops_nobody_and_the_sweep_fails(
    far_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = journal.fence

    def without_epoch(claim: Claimed, **options: Any) -> Sql:
        whole = fence(claim, **options)
        text = re.sub(r" AND e\.epoch = %s(::int\w*)?", "", whole.text)
        assert text != whole.text
        return Sql(text, (*whole.params[:2], *whole.params[3:]))

    _keep_tokens(monkeypatch)
    _replace(monkeypatch, fence, without_epoch)

    with pytest.raises(Violation, match="a fenced turn recorded its result"):
        far_harness.run(scenario("bump_with_a_turn_in_flight"), Fault())


def test_the_epoch_in_the_fence_stops_a_turn_that_kept_its_token(
    far_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    _keep_tokens(monkeypatch)

    far_harness.run(scenario("bump_with_a_turn_in_flight"), Fault())


if os.environ.get("TEST_DB") == "postgres":

    def _lock_with(monkeypatch: pytest.MonkeyPatch, lock: str) -> None:
        fenced_insert = journal.fenced_insert

        def weaker(claim: Claimed, rows: Any) -> Sql:
            whole = fenced_insert(claim, rows)
            assert " FOR SHARE OF e" in whole.text
            return Sql(whole.text.replace(" FOR SHARE OF e", lock), whole.params)

        _replace(monkeypatch, fenced_insert, weaker)
        monkeypatch.setattr("tests.db.racing.fenced_insert", weaker)

    def _appears_after(give_up: Callable[[Claimed], Any]) -> bool:
        """Whether a turn's append becomes visible only after somebody else has taken its token away."""
        execution = waiter.start(1)
        with racers() as (zombie, other):
            old = zombie.run(claim_one)
            open_append = Transaction(zombie)
            assert zombie.run(append, old) == 1
            taking = other.begin(give_up, old)
            while not (taking.done() or other.waits()):
                pass
            seen = other.run(read_journal, execution) if taking.done() and taking.result() else None
            open_append.commit()
            taking.result(60)
            return seen is not None and seen != other.run(read_journal, execution)

    def _release(old: Claimed) -> bool:
        return leave.release(old, Pages())

    def _take_over(old: Claimed) -> Any:
        odd = lapsed_or_none()
        return odd is not None and take_over(odd)

    def lapsed_or_none() -> Any:
        try:
            return lapsed()
        except ValueError:  # passed by: its row is locked
            return None

    @pytest.mark.parametrize("taken_by", [_release, _take_over])
    def test_with_the_right_lock_no_append_appears_after_its_token_is_gone(
        project: Project, taken_by: Callable[[Claimed], Any]
    ) -> None:
        assert not _appears_after(taken_by)

    @pytest.mark.parametrize(
        ("lock", "taken_by"), [("", _release), ("", _take_over), (" FOR KEY SHARE OF e", _release)]
    )
    def test_with_a_weaker_lock_a_zombies_row_appears_later(
        project: Project, monkeypatch: pytest.MonkeyPatch, lock: str, taken_by: Callable[[Claimed], Any]
    ) -> None:
        _lock_with(monkeypatch, lock)
        assert _appears_after(taken_by)

    def _misses_an_append(*, isolation: str, read_in_the_claim: bool) -> bool:
        """Whether a take-over whose snapshot is older than a last append reads a journal without it."""
        execution = waiter.start(1)
        with racers() as (zombie, heir):
            old = zombie.run(claim_one)
            heir.run(lapse_leases)
            claiming = Transaction(heir)
            heir.run(_begin_snapshot, isolation)
            assert zombie.run(append, old) == 1
            heir.run(lambda: take_over(lapsed_without_lapsing()))
            in_the_claim = heir.run(read_journal, execution)
            claiming.commit()
            after_it = heir.run(read_journal, execution)
            return not (in_the_claim if read_in_the_claim else after_it)

    def _begin_snapshot(isolation: str) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
            cursor.execute("SELECT count(*) FROM django_durable_execution")

    def lapsed_without_lapsing() -> Any:
        from django_durable.conf import config
        from django_durable.engine.transitions.claim import claim_due
        from django_durable.runtime.claiming import terms_of

        _claims, (odd,) = claim_due("default", terms_of(limit=1, queues=(config().default_queue,)))
        return odd

    def test_a_journal_read_in_the_claims_own_snapshot_misses_an_append(project: Project) -> None:
        assert _misses_an_append(isolation="REPEATABLE READ", read_in_the_claim=True)

    @pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
    def test_a_journal_read_after_the_claims_commit_misses_none(project: Project, isolation: str) -> None:
        assert not _misses_an_append(isolation=isolation, read_in_the_claim=False)
