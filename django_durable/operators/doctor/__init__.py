"""What is stuck, told apart from what only waits.

Each fault has a function of its own that finds it in one statement, so that a busy database cannot make halves
of two moments look like a fault. An injected fault gives its own finding and no other; a healthy system, idle or
busy, gives none. Times are compared by the database's clock.
"""

from __future__ import annotations

from django_durable.operators.doctor.examination import CHECKS, examine
from django_durable.operators.doctor.finding import Finding
from django_durable.operators.doctor.liveness import liveness_violations

__all__ = ["CHECKS", "Finding", "examine", "liveness_violations"]
