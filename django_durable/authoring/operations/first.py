"""First: one wait for several sources."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django_durable.authoring.arrived import Arrived
from django_durable.authoring.future import Future
from django_durable.authoring.operations.base import Duration, operation
from django_durable.authoring.operations.updates import Updates
from django_durable.authoring.source import Offer, UpdateSource, offer_of
from django_durable.engine.messages import Letter
from django_durable.engine.transitions.wait import Recorded, Terms
from django_durable.errors import WaitTimeout
from django_durable.models.columns import NAME_LENGTH
from django_durable.payloads import decode, encode


class First(Updates):
    """``ctx.wait_any``."""

    @operation
    def wait_any(self, *sources: Any, timeout: Duration | None = None, until: datetime | None = None) -> Arrived:
        """Whichever comes first: of signals by their names, ``update(…)``, ``event(…)``, callbacks, futures.

        Exactly one is taken; the others stay for later waits. Raises ``WaitTimeout`` at the deadline, and the error
        of a callback or a future that failed.
        """
        offers = [offer_of(source, number) for number, source in enumerate(sources)]
        if not offers:
            raise ValueError("wait_any() needs at least one source")
        channels = [offer.channel for offer in offers if offer.source is None]
        if len(set(channels)) < len(channels):
            raise ValueError("wait_any() got the same source twice")
        position, encoded = self._receive(
            "any",
            _name_of(offers),
            timeout,
            until,
            lambda position: WaitTimeout("nothing of what was waited for arrived in time", position=position),
            lambda _position: channels,
            lambda _position, _until: _terms(offers),
        )
        number, value = decode(encoded)
        source = sources[number]
        if isinstance(source, UpdateSource):
            return Arrived(source=source, value=value, update=self._update(source.name, position, value))
        if isinstance(source, Future):
            return Arrived(source=source, value=source.result())
        return Arrived(source=source, value=value)


def _terms(offers: Sequence[Offer]) -> Terms:
    by_channel = {offer.channel: number for number, offer in enumerate(offers) if offer.source is None}

    def record(letter: Letter) -> Recorded:
        number = letter.number if letter.number >= 0 else by_channel[letter.channel]
        told = offers[number].record(letter)
        if told.output is None:
            return told
        return Recorded(output=encode([number, decode(told.output)], where=f"what came from {offers[number].label}"))

    return Terms(sources=[offer.source for offer in offers if offer.source is not None], record=record)


def _name_of(offers: Sequence[Offer]) -> str:
    """What is compared with the history: all sources in their order, however many."""
    name = ", ".join(offer.label for offer in offers)
    if len(name) <= NAME_LENGTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: NAME_LENGTH - len(digest) - 2]}… {digest}"[:NAME_LENGTH]
