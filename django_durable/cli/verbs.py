"""VERBS: everything that ``manage.py durable`` does, in the order of its help."""

from __future__ import annotations

from typing import Final

from django_durable.cli.approvals import Decide, ListApprovals
from django_durable.cli.check_replay import CheckReplay
from django_durable.cli.dead_letters import ListDeadLetters
from django_durable.cli.doctor import Doctor
from django_durable.cli.history import History
from django_durable.cli.listing import ListExecutions
from django_durable.cli.operate import Cancel, Fork, Pause, Resume, Retry
from django_durable.cli.planes import Planes
from django_durable.cli.prune import Prune
from django_durable.cli.publish import Publish
from django_durable.cli.requeue import Requeue
from django_durable.cli.schedules import Schedules
from django_durable.cli.show import Show
from django_durable.cli.signals import Signal
from django_durable.cli.start import Start
from django_durable.cli.stats import ShowStats
from django_durable.cli.tick import Tick
from django_durable.cli.updates import Update
from django_durable.cli.verb import Verb
from django_durable.cli.worker import RunWorker
from django_durable.cli.workflows import ListWorkflows

__all__ = ["VERBS"]

CLASSES: Final[tuple[type[Verb], ...]] = (
    RunWorker,
    Tick,
    Start,
    ListExecutions,
    Show,
    History,
    Signal,
    Update,
    Publish,
    Cancel,
    Retry,
    Pause,
    Resume,
    Decide,
    Fork,
    Requeue,
    Prune,
    ShowStats,
    ListWorkflows,
    ListApprovals,
    ListDeadLetters,
    Schedules,
    CheckReplay,
    Planes,
    Doctor,
)
VERBS: Final[dict[str, Verb]] = {verb.name: verb() for verb in CLASSES}
