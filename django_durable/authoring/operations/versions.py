"""Versions: one body for runs from before a change of the code and for those from after it."""

from __future__ import annotations

from django_durable.authoring.operations.base import Base, operation
from django_durable.engine.markers import MARKER, is_marked
from django_durable.engine.session import Session
from django_durable.models.columns import check_name
from django_durable.payloads import encode


class Versions(Base):
    """``ctx.patched``."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._answers: dict[str, bool] = {}

    @operation
    def patched(self, change_id: str) -> bool:
        """Whether this run takes the changed way: ``True`` if it gets here first with the code that asks.

        The first answer holds for the whole run, so a loop does not change its way in the middle. ``True`` takes a
        position and leaves a marker there, once; ``False``, for runs that are already past it, takes none. Once no
        run from before the change is left, the old branch can go, and then the call: its markers are passed over.
        """
        check_name(change_id, "change id")
        if change_id not in self._answers:
            self._answers[change_id] = self._first_answer(change_id)
        return self._answers[change_id]

    def _first_answer(self, change_id: str) -> bool:
        session = self._session
        if is_marked(session.history, change_id):
            session.pass_marker(change_id)
            return True
        if session.recorded_ahead:
            return False
        position, _record = session.enter(MARKER, change_id)
        session.keep(position, MARKER, change_id, encode(True, where="a marker"))
        return True
