"""UndoAttempts: an undo step, attempted and recorded like any other, beside its registration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

from django_durable.authoring.attempt import Attempts
from django_durable.authoring.step import Step
from django_durable.engine.journal import Record
from django_durable.engine.session import Session
from django_durable.engine.undos import FINAL, read_arguments, undo_key
from django_durable.errors import StepFailed
from django_durable.models.checkpoint import UNDO
from django_durable.payloads import decode, undo_codecs


class UndoAttempts(Attempts):
    """All attempts of the undo step that was registered at one position, by the step's own ``Retry``."""

    kind: ClassVar = "undo"
    item = UNDO
    session: Session  # never elsewhere: an undo step runs in its execution's own turn

    @property
    def idempotency_key(self) -> str:
        """That of the run which registered it: this one, or one that it continues."""
        if self.position < 0:
            return str(decode(self.session.history[self.position].encoded_output or "null"))
        return undo_key(self.session.claim.id, self.position)

    def _stored(self) -> Record | None:
        return self.session.undone.get(self.position)

    def _record(self, changes: dict[str, Any]) -> None:
        super()._record(changes)
        if changes["status"] in FINAL:
            known = self._as_pending(changes["started_at"])
            settled = replace(known, status=changes["status"], encoded_error=changes["encoded_error"])
            self.session.undone[self.position] = settled
            self.session.undos.settle(self.position, settled.status)


def run_undo_steps(session: Session, positions: Iterable[int]) -> dict[int, StepFailed]:
    """Run the undo steps of these registrations, in this order; those that failed for good, by position.

    One that fails does not stand in the way of the others. The arguments are those of the registration.
    """
    due = list(positions)
    if not due:
        return {}
    failures: dict[int, StepFailed] = {}
    claim = session.claim
    arguments = session.persistently(lambda: read_arguments(claim.using, claim.id, due))
    with session.undo_rights():
        for position in due:
            step: Step[..., Any] = session.registered[position]
            stored = session.undone.get(position)
            try:
                UndoAttempts(session, step, position, stored, undo_codecs(arguments[position])).run()
            except StepFailed as failed:
                failures[position] = failed
    return failures
