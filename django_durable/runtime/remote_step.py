"""A step elsewhere: one attempt of it, from a worker that serves its queue, while its execution waits without one."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import Any

from django_durable.authoring.attempt import Attempts
from django_durable.authoring.dispatched import unpack
from django_durable.authoring.outcome import BodyQuit
from django_durable.engine.journal import Entry
from django_durable.engine.lease_state import Lease
from django_durable.engine.ownership import Abandoned, Suspended
from django_durable.engine.persistence import CODEC_PAUSE_SECONDS, last_word, persistently
from django_durable.engine.step_session import StepSession
from django_durable.engine.transitions.step_claim import ClaimedStep
from django_durable.engine.transitions.step_end import beat, hand_back
from django_durable.errors import CodecUnavailable, StepFailed, UndecodableValue, UnknownWorkflow
from django_durable.payloads import apply_codecs, decode, encode_failure, encode_plain
from django_durable.planes.selection import selected
from django_durable.quiet import report

logger = logging.getLogger("django_durable")

UNKNOWN_SECONDS = 15.0
"""A step that this code does not declare is offered again after so long: another worker may know it."""
BEAT_SECONDS = 1.0
"""Signs of life are recorded at most so often."""


def run_remote_step(claim: ClaimedStep, lease: Lease, stop: threading.Event | None = None) -> None:
    """Run one attempt and record what became of it. Returns normally whatever that is."""
    session = StepSession(claim, lease, stop)
    with selected(claim.using):
        try:
            _run(session)
        except (Suspended, Abandoned, StepFailed):
            pass
        except CodecUnavailable as error:
            report(error, "a payload codec cannot be reached; a step of execution %s is tried again later", claim.id)
            begun = session.started
            last_word(session, lambda: hand_back(claim, delay=CODEC_PAUSE_SECONDS, begun=begun))
        except BodyQuit as quit:
            name = type(quit.cause).__name__
            logger.warning("a step of execution %s ended with %s; its attempt is abandoned", claim.id, name)
            last_word(session, lambda: hand_back(claim, delay=1.0, begun=True, crashed=True))
            if isinstance(quit.cause, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise quit.cause from None


def _run(session: StepSession) -> None:
    claim = session.claim
    try:
        step, arguments = unpack(claim.record.name, claim.encoded_input)
    except UnknownWorkflow as error:
        logger.warning("a step of execution %s is not declared here: %s", claim.id, error.code)
        persistently(session, lambda: hand_back(claim, delay=UNKNOWN_SECONDS))
        return
    except UndecodableValue as error:
        failure: dict[str, Any] = {"status": "failed", "attempt": claim.record.attempt + 1}
        failure |= {"encoded_error": encode_failure(error), "finished_at": claim.now()}
        session.record(Entry(claim.record, claim.record.position, "step", claim.record.name, failure))
        return
    # Started before and never ended: an interruption where a body may start once only, else simply another start.
    interrupted = claim.lost and step.options.at_most_once
    record = replace(claim.record, begun=claim.record.attempt + int(interrupted))
    Attempts(
        session,
        step,
        record.position,
        record,
        arguments,
        item=record.item,
        last_heartbeat=None if claim.encoded_heartbeat is None else decode(claim.encoded_heartbeat),
        beat=Beats(session),
    ).run()


class Beats:
    """Records signs of life, each with its details, at most every BEAT_SECONDS."""

    def __init__(self, session: StepSession) -> None:
        self._session = session
        self._told_at = float("-inf")

    def __call__(self, details: Any) -> None:
        plain = encode_plain(details, where="details of a heartbeat")
        if time.monotonic() - self._told_at < BEAT_SECONDS:
            return
        self._told_at = time.monotonic()
        try:
            encoded = apply_codecs(plain)
        except CodecUnavailable as error:
            report(error, "a heartbeat of execution %s is not recorded", self._session.claim.id)
            return
        if not beat(self._session.claim, encoded):
            self._session.lease.lost = True
