"""Callback: something outside is asked, and answers through a token that needs no other credential."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.core.signing import BadSignature, Signer

from django_durable.authoring.source import Offer
from django_durable.conf import config
from django_durable.engine.messages import CALLBACK, Letter
from django_durable.engine.transitions.wait import Recorded
from django_durable.errors import CallbackFailed, ExecutionNotFound
from django_durable.payloads import decode, encode, encode_failure

SALT = "django_durable.callback"
PATH = "callbacks"
# A decision is stored as a dict with one of these.
VALUE, FAILED = "value", "failed"
Duration = float | timedelta


@dataclass(frozen=True, slots=True)
class Address:
    """What a token says: whose callback it is, and where in the history it was made. No plane and no tenant."""

    execution_id: UUID
    channel: str


class Callback:
    """What ``ctx.create_callback`` returns. Made by the engine; valid for its own turn only."""

    __slots__ = ("_wait", "channel", "name", "token")

    def __init__(self, name: str, position: int, token: str, wait: Callable[..., Any]) -> None:
        self.name = name
        self.token = token
        self.channel = channel_of(position, token)
        self._wait = wait

    def __repr__(self) -> str:
        return f"<Callback {self.name!r}>"

    @property
    def url(self) -> str:
        """Where it can be decided by HTTP: ``DURABLE["CALLBACK_BASE_URL"]`` and the token."""
        base = config().callback_base_url
        if base is None:
            raise ImproperlyConfigured(
                "a callback has a URL only with DURABLE['CALLBACK_BASE_URL']: set it to where the URLs of"
                " django_durable.rest.urls are seen from outside, or pass on callback.token instead"
            )
        return f"{base.rstrip('/')}/{PATH}/{self.token}/"

    def offer(self, number: int) -> Offer:
        """How ``ctx.wait_any`` waits for it."""
        return Offer(label=f"callback:{self.label}", channel=self.channel, record=decided)

    @property
    def label(self) -> str:
        """What its waits are recorded under: two callbacks without a name differ by where they were made."""
        return self.name or "#" + self.channel.split(":")[1]

    def wait(self, timeout: Duration | None = None, until: datetime | None = None) -> Any:
        """What it was completed with, before or after this was called. Takes a position.

        Raises ``CallbackFailed`` where it was failed, ``CallbackTimeout`` at the deadline.
        """
        return self._wait(self, timeout, until)


def decided(letter: Letter) -> Recorded:
    """What a wait records of a decision: the value as its output, or the failure as its error."""
    decision = decode(letter.payload)
    if FAILED in decision:
        return Recorded(error=encode_failure(CallbackFailed(decision[FAILED]), whole=True))
    return Recorded(output=encode(decision[VALUE], where="value of the callback"))


def channel_of(position: int, token: str) -> str:
    """Where its decision is sent: a position that is taken anew after a retry makes another callback."""
    return f"{CALLBACK}{position}:{hashlib.sha256(token.encode()).hexdigest()[:16]}"


def make_token(execution_id: UUID, position: int, nonce: str) -> str:
    """A token that nobody else can make."""
    return Signer(salt=SALT).sign_object([execution_id.hex, position, nonce])


def read_token(token: str) -> Address:
    """Whose callback it decides. Raises ``ExecutionNotFound`` for anything but a token made here."""
    try:
        execution_id, position, _nonce = Signer(salt=SALT).unsign_object(token)
        return Address(UUID(execution_id), channel_of(int(position), token))
    except (BadSignature, ValueError, TypeError) as error:
        raise ExecutionNotFound("this is not the token of a callback made here") from error
