"""The project's ``DURABLE`` setting, read once into a frozen ``Config``.

``config()`` is what the rest of the package asks. Reading touches no database and imports no code of the
project: dotted paths stay strings, and the system checks try them. ``read`` finds every fault in one go, so
that the checks can report each of them; ``config()`` refuses a setting that has any.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final, get_origin, get_type_hints

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from django_durable.conf import kinds
from django_durable.conf.problem import Fault, Problem
from django_durable.showing import shown

__all__ = ["Config", "Problem", "config", "read", "read_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of this project; ``config()`` is how to get it.

    Attributes are the keys of ``DURABLE`` in lower case; ``*_seconds`` are seconds as float. A field's
    default is the default of its key, its annotation names the kind of value that the key takes. What each of
    them means is in the settings reference.
    """

    lease_seconds: Annotated[float, kinds.PAUSE] = 30.0
    poll_seconds: Annotated[float, kinds.PAUSE] = 1.0  # an unset one is never longer than the lease
    notify: Annotated[bool, kinds.SWITCH] = False
    tick_seconds: Annotated[float, kinds.PAUSE] = 1.0
    worker_concurrency: Annotated[int, kinds.COUNT] = 4
    worker_shutdown_seconds: Annotated[float, kinds.PAUSE_OR_ZERO] = 30.0  # an unset one follows the lease
    max_recoveries: Annotated[int, kinds.COUNT_OR_ZERO] = 10
    max_claim_failures: Annotated[int, kinds.COUNT] = 10
    max_payload_bytes: Annotated[int, kinds.SIZE] = 1_048_576
    max_positions: Annotated[int, kinds.COUNT] = 10_000
    inline_retry_seconds: Annotated[float, kinds.PAUSE_OR_ZERO] = 1.0
    body_queries: Annotated[kinds.Policy, kinds.POLICY] = "refuse"
    spine: Annotated[str, kinds.NAME] = "default"
    planes: Annotated[Mapping[str, str], kinds.PLANES] = field(default_factory=lambda: MappingProxyType({}))
    untenanted: Annotated[kinds.Untenanted, kinds.UNTENANTED] = "control-plane"  # unset, planes: "refuse"
    cross_database_start: Annotated[kinds.Policy, kinds.POLICY] = "refuse"
    tenant_resolver: Annotated[str | None, kinds.PATH] = None
    default_queue: Annotated[str, kinds.NAME] = "durable"
    default_retry: Annotated[object | None, kinds.RETRY] = None
    codecs: Annotated[tuple[str, ...], kinds.PATHS] = ()
    redact: Annotated[tuple[str, ...], kinds.NAMES] = ()
    callback_base_url: Annotated[str | None, kinds.URL] = None
    event_retention: Annotated[timedelta, kinds.SPAN] = timedelta(days=7)
    retention: Annotated[Mapping[str, timedelta | None], kinds.RETENTION] = field(
        default_factory=lambda: MappingProxyType({})
    )
    autodiscover_module: Annotated[str | None, kinds.MODULE] = "workflows"
    rest_permission_classes: Annotated[tuple[kinds.Dotted, ...] | None, kinds.CLASSES] = None
    rest_authentication_classes: Annotated[tuple[kinds.Dotted, ...] | None, kinds.CLASSES] = None
    rest_throttle_classes: Annotated[tuple[kinds.Dotted, ...] | None, kinds.CLASSES] = None
    chosen: frozenset[str] = frozenset()
    """The keys that the project set itself, in upper case: tells a chosen ``UNTENANTED`` from the default."""


KINDS: Final[Mapping[str, kinds.Kind[Any]]] = MappingProxyType(
    {
        name.upper(): hint.__metadata__[0]
        for name, hint in get_type_hints(Config, include_extras=True).items()
        if get_origin(hint) is Annotated
    }
)
"""Every key of ``DURABLE`` with the kind of its value."""


def config() -> Config:
    """The project's settings, read once; ``override_settings`` and pytest-django's ``settings`` reset it.

    Raises ``ImproperlyConfigured`` with every fault that ``read`` finds.
    """
    found, problems = read_settings()
    if problems:
        lines = "".join(f"\n- {problem.message()} {problem.hint()}" for problem in problems)
        raise ImproperlyConfigured(f"settings.DURABLE cannot be used:{lines}")
    return found


@cache
def read_settings() -> tuple[Config, tuple[Problem, ...]]:
    """``read(settings.DURABLE)``, cached: for start-up and the checks, which must outlive a fault."""
    found, problems = read(getattr(settings, "DURABLE", {}))
    return found, tuple(problems)


def read(raw: object) -> tuple[Config, list[Problem]]:
    """A ``Config`` from the setting's value, and everything that is wrong with it, in the order of its keys.

    Never raises: a key with a problem has its default in the ``Config``.
    """
    if not isinstance(raw, Mapping):
        parts = {"value": shown(raw), "type": type(raw).__name__}
        return Config(), [Problem(fault="shape", key="DURABLE", parts=parts)]
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in raw.items():
        problem = _read_key(key, value, values)
        if problem is not None:
            problems.append(problem)
    problems += _impossible_combinations(raw, values)
    return _complete(values), problems


def _read_key(key: object, value: object, values: dict[str, Any]) -> Problem | None:
    """Put the key's value into ``values``, or return why not."""
    if not isinstance(key, str) or key not in KINDS:
        return _unknown_key(key)
    try:
        values[key] = KINDS[key].read(value)
    except TypeError:
        return _wrong_value(key, value, fault="type")
    except ValueError:
        return _wrong_value(key, value, fault="value")
    return None


def _unknown_key(key: object) -> Problem:
    if not isinstance(key, str):
        return Problem(fault="unknown", key=shown(key), parts={"key": shown(key), "keys": ", ".join(KINDS)})
    near = difflib.get_close_matches(key.strip().upper(), KINDS, n=1, cutoff=0.55)
    parts = {"suggestion": repr(near[0])} if near else {"keys": ", ".join(KINDS)}
    return Problem(fault="unknown", key=key, parts=parts)


def _wrong_value(key: str, value: object, *, fault: Fault) -> Problem:
    parts = {
        "value": shown(value),
        "type": type(value).__name__,
        "default": shown(_default(key)),
    }
    return Problem(fault=fault, key=key, expected=KINDS[key].expected, parts=parts)


def _impossible_combinations(raw: Mapping[Any, Any], values: dict[str, Any]) -> list[Problem]:
    """Values that are fine alone and not together; the offending one is taken out of ``values``."""
    if "LEASE_SECONDS" in raw and "LEASE_SECONDS" not in values:
        return []  # reported as wrong already
    lease = values.get("LEASE_SECONDS", _default("LEASE_SECONDS"))
    if values.get("POLL_SECONDS", 0) <= lease:
        return []
    del values["POLL_SECONDS"]
    parts = {"value": shown(raw["POLL_SECONDS"]), "other": "LEASE_SECONDS", "bound": shown(lease)}
    return [Problem(fault="combination", key="POLL_SECONDS", parts=parts)]


def _complete(values: dict[str, Any]) -> Config:
    """The ``Config``, with the defaults that depend on other keys."""
    chosen = frozenset(values)
    lease = values.get("LEASE_SECONDS", _default("LEASE_SECONDS"))
    values.setdefault("POLL_SECONDS", min(lease, _default("POLL_SECONDS")))
    values.setdefault("WORKER_SHUTDOWN_SECONDS", lease)
    values.setdefault("UNTENANTED", "refuse" if values.get("PLANES") else "control-plane")
    return Config(chosen=chosen, **{key.lower(): value for key, value in values.items()})


def _default(key: str) -> Any:
    return getattr(Config(), key.lower())


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "DURABLE":
        read_settings.cache_clear()


setting_changed.connect(_forget, dispatch_uid="django_durable.conf")
