"""A step in its execution's turn: attempts, recorded one by one, until there is a result or a final failure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import count
from typing import Any, ClassVar

from django.db import DatabaseError, connections, transaction

from django_durable.authoring.attempt_clocks import AttemptClocks
from django_durable.authoring.current import CurrentStep, _current
from django_durable.authoring.hygiene import tidied
from django_durable.authoring.outcome import BodyFailed, BodyQuit, checked_result, quits
from django_durable.authoring.place import Where, entered
from django_durable.authoring.recorded_outcome import raise_told
from django_durable.authoring.repetition import is_passing, is_worth_repeating, pause_before
from django_durable.authoring.single_database import only_writes_on
from django_durable.authoring.step import Step
from django_durable.conf import config
from django_durable.engine.contention import drop_broken_connection
from django_durable.engine.journal import Entry, Record
from django_durable.engine.session import Session
from django_durable.engine.step_session import StepSession
from django_durable.engine.telling import tell
from django_durable.errors import StepInterrupted, StepTimeout
from django_durable.models.checkpoint import WHOLE
from django_durable.payloads import apply_codecs, decode, encode_plain, secrets_in, store_failure
from django_durable.signals import step_failed

ATTEMPTS_KEPT = (3, 7)
"""Failed attempts that a checkpoint lists: the first and the last ones."""


class Attempts:
    """All attempts of one step at one position of one turn."""

    kind: ClassVar = "step"
    item = WHOLE

    def __init__(
        self,
        session: Session | StepSession,
        step: Step[..., Any],
        position: int,
        record: Record | None,
        arguments: str,
        *,
        item: int | None = None,
        last_heartbeat: Any = None,
        beat: Callable[[Any], None] | None = None,
    ) -> None:
        self.session = session
        if item is not None:
            self.item = item
        self.last_heartbeat = last_heartbeat
        self.beat = beat
        self.step = step
        self.position = position
        self.record = record
        self.arguments = arguments
        self._clocks = AttemptClocks(session.lease, step.options, self._expire)
        self.ended = record.attempt if record else 0
        self.begun = record.begun if record else 0
        self.first_started_at = record.started_at if record else None
        self.log: list[dict[str, Any]] = json.loads(record.attempts_log) if record and record.attempts_log else []

    def run(self) -> Any:
        """The result, as decoded from what was recorded. Raises ``StepFailed``."""
        if self.record is not None:
            self._wait_for_due_time(self.record.wake_at)
            if self.begun > self.ended:
                lost = StepInterrupted(
                    f"attempt {self.begun} of step {self.step.name!r} was started and its process is gone"
                )
                self._failed(lost, self.record.started_at)
        while True:
            self.session.before_body()
            started_at = self.session.claim.now()
            self.first_started_at = self.first_started_at or started_at
            self._announce(started_at)
            try:
                return decode(self._attempt(started_at))
            except BodyFailed as failed:
                self._failed(failed.cause, started_at)

    # -- one attempt -----------------------------------------------------------------------------------------

    def _attempt(self, started_at: datetime) -> str:
        if self.step.options.transactional:
            return self._transactional_attempt(started_at)
        plain = self._encode(self._call())
        self._record(self._completed(apply_codecs(plain), started_at))
        return plain

    def _transactional_attempt(self, started_at: datetime) -> str:
        """Body and checkpoint in one transaction; repeated whole, without using an attempt, after contention."""
        using = self.session.claim.using
        for number in count(1):
            begun_on = connections[using].connection
            try:
                return self._in_transaction(using, started_at)
            except BodyFailed as error:
                if not is_worth_repeating(error.cause, number, using, begun_on):
                    raise
            except DatabaseError as error:
                # Of the transaction itself: as long as the lease is held, it is only a matter of time.
                if connections[using].in_atomic_block or not is_passing(error):
                    raise BodyFailed(error) from error
            pause_before(number)
            drop_broken_connection(using)
            if self._was_committed():
                return self._committed_output()
            self.session.before_body()
        raise AssertionError("unreachable")

    def _in_transaction(self, using: str, started_at: datetime) -> str:
        with transaction.atomic(using=using):
            self._take_write_lock(using)
            with only_writes_on(using, self.step.name):
                value = self._call()
            plain = self._encode(value)
            self._record(self._completed(apply_codecs(plain), started_at))
        return plain

    def _take_write_lock(self, using: str) -> None:
        """SQLite cannot turn a reader into a writer: begin with a write, and learn early that the lease is gone."""
        if connections[using].vendor != "sqlite":
            return
        if not self.session.touch():
            self.session.refuse_write()

    def _was_committed(self) -> bool:
        self.session.load()
        record = self._stored()
        return record is not None and record.status == "completed"

    def _committed_output(self) -> str:
        record = self._stored()
        return (record.encoded_output if record is not None else None) or "null"

    def _stored(self) -> Record | None:
        """What the journal has of it."""
        return self.session.history.get(self.position)

    @property
    def idempotency_key(self) -> str:
        """What is equal on every attempt and belongs to no other step."""
        index = f".{self.item}" if self.item > WHOLE else ""
        return f"{self.session.claim.id}:{self.position}{index}"

    def _call(self) -> Any:
        args, kwargs = decode(self.arguments)
        step = CurrentStep(
            execution_id=self.session.claim.id,
            idempotency_key=self.idempotency_key,
            attempt=self.ended + 1,
            name=self.step.name,
            lease=self.session.lease,
            last_heartbeat=self.last_heartbeat,
            beat=self._beat,
        )
        self._clocks.start(self._spent())
        token = _current.set(step)
        try:
            with entered(Where.STEP, self.session), tidied(f"step {self.step.name!r}"):
                return checked_result(self.step.name, self.step.run(*args, **kwargs))
        except BaseException as error:
            if isinstance(error, Exception) and not quits(error):
                raise BodyFailed(error) from error
            raise BodyQuit(error) from error
        finally:
            _current.reset(token)
            self._clocks.stop()
            self.last_heartbeat = step.last_heartbeat
            self.lines = step.lines

    def _encode(self, value: Any) -> str:
        try:
            return encode_plain(value, where=f"result of step {self.step.name!r}")
        except Exception as error:
            raise BodyFailed(error) from error

    # -- records ---------------------------------------------------------------------------------------------

    def _completed(self, encoded: str, started_at: datetime) -> dict[str, Any]:
        return {
            "status": "completed",
            "attempt": self.ended + 1,
            "begun": self.ended + 1,
            "encoded_output": encoded,
            "encoded_error": None,
            "wake_at": None,
            "started_at": self.first_started_at or started_at,
            "finished_at": self.session.claim.now(),
            "log": self._log_text(),
        }

    def _log_text(self) -> str:
        lines = getattr(self, "lines", [])
        return json.dumps(lines) if lines else ""

    def _record(self, changes: dict[str, Any]) -> None:
        self.session.record(self._entry(changes))

    def _entry(self, changes: dict[str, Any]) -> Entry:
        return Entry(self.record, self.position, self.kind, self.step.name, changes, self.item)

    def _announce(self, started_at: datetime) -> None:
        """An at-most-once body is announced before it starts, so that a crash in it is seen."""
        if not self.step.options.at_most_once:
            return
        changes = {"status": "pending", "begun": self.ended + 1, "started_at": self.first_started_at}
        self._record(changes)
        self.begun = self.ended + 1
        self.record = self._as_pending(started_at)

    def _as_pending(self, started_at: datetime | None) -> Record:
        return Record(
            position=self.position,
            item=self.item,
            kind=self.kind,
            name=self.step.name,
            status="pending",
            attempt=self.ended,
            begun=self.begun,
            lease_token=self.session.claim.token,
            encoded_output=None,
            encoded_error=None,
            wake_at=None,
            started_at=started_at,
            attempts_log="",
        )

    # -- failures --------------------------------------------------------------------------------------------

    def _failed(self, error: BaseException, started_at: datetime | None) -> None:
        """Record a failed attempt; return for the next one, suspend until then, or raise the final failure."""
        attempt = self.ended + 1
        due_at = self.next_due(error, attempt)
        changes, told = self.failure(error, attempt, due_at, started_at)
        self.log = json.loads(changes["attempts_log"])
        if due_at is None:
            self._record(changes)
            claim, name = self.session.claim, self.step.name
            more = {"step": name, "position": self.position, "attempts": attempt, "error_type": told["type"]}
            tell(claim.using, step_failed, claim.id, **more)
            raise_told(self.step.name, told, attempt, self.position)
        self.ended = self.begun = attempt
        delay = (due_at - self.session.claim.now()).total_seconds()
        if delay > config().inline_retry_seconds or not self.session.waits_for_retry:
            self.session.try_again_at(due_at, self._entry(changes))
        self._record(changes)
        self.record = self._as_pending(started_at)
        self._wait_for_due_time(due_at)

    def next_due(self, error: BaseException, attempt: int) -> datetime | None:
        """When the next attempt is due; ``None``: this one was the last."""
        retry = self.step.retry
        if not retry.allows(error, attempt):
            return None
        due_at = self.session.claim.now() + timedelta(seconds=retry.delay_after(error, attempt))
        total = self.step.options.total_timeout
        first = self.first_started_at
        if total is not None and first is not None and due_at >= first + timedelta(seconds=total):
            return None
        return due_at

    def failure(
        self, error: BaseException, attempt: int, due_at: datetime | None, started_at: datetime | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The checkpoint after a failed attempt: final, or pending until the next one is due; and its error, told."""
        encoded, told = store_failure(error, secrets=self._secrets())
        now = self.session.claim.now()
        log = _capped([*self.log, {"attempt": attempt, "type": told["type"], "ended_at": now.isoformat()}])
        changes = {
            "status": "failed" if due_at is None else "pending",
            "attempt": attempt,
            "begun": attempt,
            "encoded_error": encoded,
            "wake_at": due_at,
            "started_at": self.first_started_at or started_at,
            "finished_at": now if due_at is None else None,
            "attempts_log": json.dumps(log),
            "log": self._log_text(),
        }
        return changes, told

    def _secrets(self) -> Iterable[str]:
        """What the arguments hold under redacted keys: masked in error texts too."""
        globs = config().redact
        return secrets_in(decode(self.arguments), globs) if globs else ()

    def _wait_for_due_time(self, due_at: datetime | None) -> None:
        if due_at is None:
            return
        session = self.session
        remaining = (due_at - session.claim.now()).total_seconds()
        if remaining > config().inline_retry_seconds:
            session.rest_until(due_at)
        if remaining > 0 and not session.wait_under_lease(due_at):
            session.before_body()  # ends the turn where a shutdown or a lost lease interrupted the pause

    # -- its clocks ------------------------------------------------------------------------------------------

    def _spent(self) -> float:
        first = self.first_started_at
        return 0.0 if first is None else (self.session.claim.now() - first).total_seconds()

    def _beat(self, details: Any) -> None:
        self._clocks.hear()
        if self.beat is not None:
            self.beat(details)

    def _expire(self, clock: str) -> None:
        limit = getattr(self.step.options, clock)
        how = "was silent for longer than" if clock == "heartbeat_timeout" else "ran longer than"
        late = StepTimeout(f"step {self.step.name!r} {how} its {clock} of {limit} s", clock=clock)
        attempt = self.ended + 1
        due_at = None if clock == "total_timeout" else self.next_due(late, attempt)
        changes, _told = self.failure(late, attempt, due_at, None)
        if self.session.expire(due_at, self._entry(changes)):
            self.session.lease.lost = True


def _capped(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first, last = ATTEMPTS_KEPT
    return entries if len(entries) <= first + last else entries[:first] + entries[-last:]
