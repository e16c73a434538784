"""What is stuck, told apart from what only waits.

Each fault has a function of its own that finds it: in one statement where hints and executions share a database,
in looks whose order and repetition rule out halves of two moments where they do not. So a busy system looks like a
healthy one. An injected fault gives its own finding and no other. Times are compared by the database's clock.
"""

from __future__ import annotations

from django_durable.operators.doctor.examination import CHECKS, examine
from django_durable.operators.doctor.finding import Finding
from django_durable.operators.doctor.liveness import liveness_violations

__all__ = ["CHECKS", "Finding", "examine", "liveness_violations"]
