"""The operators' pages in Django's admin, which imports this package where it is installed.

They show executions, dead letters, schedules, dispatch, queues with limits and operators' actions, and offer the
verbs: the same functions that code, REST and command line call. They write no row themselves.

One module a noun: ``execution`` (list, page, verbs) stands on ``dossier`` (what the page shows), ``offered`` (the
verbs, of ``acts`` and ``acts_told``, with their ``forms``) and ``confirmation``; all lists stand on ``read_only``,
``change_list`` and ``paging``, which never count; ``reader`` decides which stored values a user sees, ``scope``
which tenant's rows. A project with an admin site of its own registers the classes there.
"""

from __future__ import annotations

from django.contrib import admin

from django_durable.admin.dead_letter import DeadLetterAdmin
from django_durable.admin.execution import ExecutionAdmin
from django_durable.admin.hint import DispatchHintAdmin
from django_durable.admin.operator_action import OperatorActionAdmin
from django_durable.admin.queue_limit import QueueLimitAdmin
from django_durable.admin.schedule import ScheduleAdmin
from django_durable.models import DeadLetter, DispatchHint, Execution, OperatorAction, QueueLimit, Schedule

__all__ = [
    "DeadLetterAdmin",
    "DispatchHintAdmin",
    "ExecutionAdmin",
    "OperatorActionAdmin",
    "QueueLimitAdmin",
    "ScheduleAdmin",
]

admin.site.register(Execution, ExecutionAdmin)
admin.site.register(DeadLetter, DeadLetterAdmin)
admin.site.register(DispatchHint, DispatchHintAdmin)
admin.site.register(OperatorAction, OperatorActionAdmin)
admin.site.register(Schedule, ScheduleAdmin)
admin.site.register(QueueLimit, QueueLimitAdmin)
