"""Which kit the functions of ``django_durable.testing`` speak to, and when it ends.

An open kit (fixture, mixin, ``with DurableKit()``) is spoken to while it is open. Without one the running test gets
a kit of its own: the ``unittest.TestCase`` that is found up the stack ends it as a clean-up; in a pytest function
the plugin does.
"""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_durable.testing.kit import DurableKit

# Innermost last, each with the test that it was made for; None for one that was opened by hand.
_open: list[tuple[DurableKit, object]] = []
_host: object = None


@contextmanager
def opened(kit: DurableKit) -> Iterator[None]:
    """Make this the innermost kit for the length of a block."""
    entry = (kit, _host)
    _open.append(entry)
    try:
        yield
    finally:
        _open.remove(entry)


def current_kit() -> DurableKit:
    """The innermost open kit that is the running test's. Raises ``RuntimeError`` where no test is running."""
    test = _running_test()
    if _open:
        kit, host = _open[-1]
        if host is None or host is test:
            return kit
    if test is None:
        raise RuntimeError(
            "no test is running here that could end what this begins; use the durable fixture, DurableTestMixin, or"
            " `with DurableKit() as durable:`"
        )
    return _open_for(test)


def _open_for(test: Any) -> DurableKit:
    global _host
    from django_durable.testing.kit import DurableKit

    kit = DurableKit()
    _host = test
    try:
        kit.open()
    finally:
        _host = None
    if isinstance(test, unittest.TestCase):
        test.addCleanup(kit.close)
    elif isinstance(test, type):
        # The class's data has been rolled back by then.
        test.addClassCleanup(kit.close, check=False)  # type: ignore[attr-defined]
    return kit


def close_kits_of(test: object) -> None:
    """End the kits that were opened for this test, the innermost first."""
    for kit, host in reversed(_open):
        if host is test:
            kit.close()


def _running_test() -> object:
    """The test case up the stack; the class, in its set-up; else the item that pytest runs."""
    found: object = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        names = frame.f_code.co_varnames[: min(1, frame.f_code.co_argcount)]
        first = frame.f_locals.get(names[0]) if names else None
        if isinstance(first, unittest.TestCase):
            return first
        if found is None and isinstance(first, type) and issubclass(first, unittest.TestCase):
            found = first
        frame = frame.f_back
    plugin = sys.modules.get("django_durable.testing.plugin")
    return found or getattr(plugin, "running", None)
