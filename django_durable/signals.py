"""Django signals: what happened to an execution, sent robustly after the commit, at most once.

Each is sent with ``sender=Execution`` and ``execution`` as it was read after the commit; ``step_failed`` with
``step``, ``position``, ``attempts`` and ``error_type`` besides, ``approval_requested`` with ``name`` and
``position``. A receiver that must not be missed belongs into a
step instead: a crash between the commit and the sending loses the signal.
"""

from __future__ import annotations

from django.dispatch import Signal

execution_started = Signal()
execution_waiting = Signal()
execution_finished = Signal()
step_failed = Signal()
approval_requested = Signal()
