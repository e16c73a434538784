"""find_departure: does the code of today take the way of a history that was recorded before?"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from math import inf
from typing import Any, NoReturn
from uuid import UUID

from django_durable.authoring.arguments import bound_arguments
from django_durable.authoring.context import Context
from django_durable.authoring.hygiene import tidied
from django_durable.authoring.place import Where, entered, guarded_queries
from django_durable.authoring.recorded import ReadHistory, id_of
from django_durable.authoring.workflow import Workflow
from django_durable.conf import config
from django_durable.engine.claimed import COLUMNS, Claimed
from django_durable.engine.journal import Record
from django_durable.engine.lease_state import Lease
from django_durable.engine.mismatch import REMEDY
from django_durable.engine.ownership import Suspended
from django_durable.engine.session import Session
from django_durable.engine.transitions.leave import Pages
from django_durable.errors import NonDeterminismError, SuspensionSwallowed
from django_durable.payloads import decode


def find_departure(workflow: Workflow[..., Any], read: ReadHistory, *, error_texts: bool = False) -> str | None:
    """Where the code of today leaves the way of a stored history: a text that names the position, or ``None``.

    Calls the workflow's body without database and without running any step. Every operation has to meet the record
    of its position; behind the last record the code may do what it likes, as a run that was under way would.
    Of an error of the body it names the type, and the text with ``error_texts``: that may repeat a payload.
    """
    return _follow(ReplaySession(_claim_of(workflow, read), read), workflow, read, error_texts)


def _follow(session: ReplaySession, workflow: Workflow[..., Any], read: ReadHistory, error_texts: bool) -> str | None:
    """What is wrong, naming the position; ``None`` for nothing."""
    try:
        arguments = bound_arguments(workflow, decode(read.encoded_input))
    except TypeError as error:
        return f"its start does not fit the parameters of today: {error}"
    raised: Exception | None = None
    try:
        with guarded_queries(config().body_queries), tidied("the replay"), entered(Where.BODY, session):
            workflow.func(Context(session), *arguments.args, **arguments.kwargs)
    except Suspended:
        if session.outage is not None:
            raise session.outage from None
        return _broken(session)
    except Exception as error:
        raised = error
    if session.suspended and session.broken is None:
        return f"position {session.position}: {SuspensionSwallowed().message}"
    return _broken(session) or _unread(session, raised, error_texts)


def _broken(session: ReplaySession) -> str | None:
    if isinstance(session.broken, NonDeterminismError):
        return session.broken.message.removesuffix(f"; {REMEDY}")
    if session.broken is not None:
        return f"position {session.position}: {type(session.broken).__name__}: {session.broken.message}"
    return None


def _unread(session: ReplaySession, raised: Exception | None, error_texts: bool) -> str | None:
    unread = session.first_unread()
    if unread is None:
        return None
    how = "ended" if raised is None else f"raised {type(raised).__name__}"
    how += f": {raised}" if error_texts and raised is not None else ""
    return f"position {unread.position}: the history has {unread.kind} {unread.name!r}, but the code {how} before it"


class ReplaySession(Session):
    """Answers from a history and stops where that ends. It writes nothing and knows no database."""

    def __init__(self, claim: Claimed, read: ReadHistory) -> None:
        super().__init__(claim, Lease(claim.hint_id, claim.token, inf))
        self.learn(read.records)
        self._recorded = max(self.history, default=-1) + 1

    @property
    def only_follows(self) -> bool:
        """Always: nothing is carried out."""
        return True

    def enter(self, kind: str, name: str) -> tuple[int, Record | None]:
        position, record = super().enter(kind, name)
        if record is not None and not (record.is_over or record.is_elsewhere):
            self.stop_body()  # what was under way when the history was taken
        return position, record

    def leave(self, transition: Callable[[Pages], bool], pages: Pages | None = None) -> NoReturn:
        self.stop_body()

    def _stop_at_boundary(self, position: int) -> None:
        if position >= self._recorded:
            self.stop_body()


def _claim_of(workflow: Workflow[..., Any], read: ReadHistory) -> Claimed:
    start = read.start
    scheduled_for = start.get("scheduled_for")
    known = {
        "id": id_of(start),
        "workflow": workflow.name,
        "version": str(start.get("version") or workflow.version),
        "key": start.get("key"),
        "run": start.get("run") or 1,
        "tenant": start.get("tenant") or "",
        "seed": start.get("seed") or "",
        "budget": read.budget,
        "scheduled_for": datetime.fromisoformat(scheduled_for) if isinstance(scheduled_for, str) else scheduled_for,
        "revision": 1,
        "encoded_input": read.encoded_input,
    }
    return Claimed(
        using="",
        hint_id=UUID(int=0),
        token=UUID(int=0),
        worker="",
        row={**dict.fromkeys(COLUMNS), **known},
        read_at=datetime.now(UTC),
        lease_seconds=inf,
        sent_at=time.monotonic(),
    )
