"""The testing kit: workflows to their end inside a plain ``TestCase``, days in milliseconds.

Turns run in the test's own connection and thread, by the same claim and replay as in production; nothing is
committed and no thread is started. Three ways to the same verbs: the pytest fixture ``durable``,
``DurableTestMixin`` for test classes, and the functions of this module.

Every name is loaded when first used: the pytest plugin lives in this package and must not import tables before
Django is set up.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_FUNCTIONS = (
    "advance",
    "crash_turn",
    "fail_step",
    "on_wait",
    "run",
    "run_until_idle",
    "stub_child",
    "stub_step",
)

_HOMES = {
    "DurableKit": "django_durable.testing.kit",
    "DurableTestMixin": "django_durable.testing.mixin",
    "assert_replays": "django_durable.testing.expectations",
    "assert_steps": "django_durable.testing.expectations",
    "export_history": "django_durable.authoring.recorded",
    "live_worker": "django_durable.testing.live",
    "step_context": "django_durable.testing.fake_step",
    **dict.fromkeys(_FUNCTIONS, "django_durable.testing.functions"),
}

if TYPE_CHECKING:
    from django_durable.authoring.recorded import export_history as export_history
    from django_durable.testing.expectations import assert_replays as assert_replays
    from django_durable.testing.expectations import assert_steps as assert_steps
    from django_durable.testing.fake_step import step_context as step_context
    from django_durable.testing.functions import advance as advance
    from django_durable.testing.functions import crash_turn as crash_turn
    from django_durable.testing.functions import fail_step as fail_step
    from django_durable.testing.functions import on_wait as on_wait
    from django_durable.testing.functions import run as run
    from django_durable.testing.functions import run_until_idle as run_until_idle
    from django_durable.testing.functions import stub_child as stub_child
    from django_durable.testing.functions import stub_step as stub_step
    from django_durable.testing.kit import DurableKit as DurableKit
    from django_durable.testing.live import live_worker as live_worker
    from django_durable.testing.mixin import DurableTestMixin as DurableTestMixin

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
