"""Execution: one run of a workflow, its row and its state in one."""

from __future__ import annotations

import uuid
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from asgiref.sync import sync_to_async
from django.db import models
from django.utils.translation import gettext_lazy as _

from django_durable.ids import time_ordered_id
from django_durable.models.columns import NameField
from django_durable.models.partial_index import PartialIndex

if TYPE_CHECKING:
    from django_stubs_ext.db.models.manager import RelatedManager

    from django_durable.models.checkpoint import Checkpoint

R = TypeVar("R")

if TYPE_CHECKING:

    class ResultOf(Generic[R]):
        """Generic in the result, for type checkers."""
else:

    class ResultOf:
        """At run time ``Execution[int]`` is ``Execution``: a model must not inherit from ``typing.Generic``."""

        def __class_getitem__(cls, result):
            return cls


class Status(models.TextChoices):
    """The twelve statuses of an execution."""

    PENDING = "pending", _("pending")
    RUNNING = "running", _("running")
    WAITING = "waiting", _("waiting")
    PAUSED = "paused", _("paused")
    BLOCKED = "blocked", _("blocked")
    COMPENSATING = "compensating", _("compensating")
    COMPLETED = "completed", _("completed")
    CONTINUED = "continued", _("continued")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")
    TIMED_OUT = "timed_out", _("timed out")
    DEAD = "dead", _("dead")


TERMINAL = ("completed", "continued", "failed", "cancelled", "timed_out", "dead")
ACTIVE = ("pending", "running", "waiting", "paused", "blocked", "compensating")
RETRYABLE = ("failed", "timed_out", "dead")


class ExecutionQuerySet(models.QuerySet["Execution[Any]"]):
    """Reads only: the engine alone writes executions."""

    def active(self) -> Self:
        """Executions that have not ended."""
        return self.filter(status__in=ACTIVE)

    def terminal(self) -> Self:
        """Executions that have ended."""
        return self.filter(status__in=TERMINAL)

    def tagged(self, **tags: str | int | bool) -> Self:
        """Executions that carry all of these tags."""
        return self.filter(**{f"tags__{name}": tag for name, tag in tags.items()})

    def locate(self, id: uuid.UUID | str) -> Execution[Any]:
        """The execution with this id, on whatever plane it lives. Raises ``ExecutionNotFound``."""
        from django_durable.planes.location import locate

        return locate(id)

    def create(self, **kwargs: Any) -> NoReturn:
        raise TypeError("executions are started with Workflow.start(), not created")

    def bulk_create(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("executions are started with Workflow.start_many(), not created")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("executions are changed by their verbs (cancel, retry, …), not by bulk_update()")

    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError("executions are changed by their verbs (cancel, retry, …), not by update()")

    def delete(self) -> NoReturn:
        raise TypeError("executions are removed by `manage.py durable prune`, not by delete()")


class Execution(models.Model, ResultOf[R]):
    """One run of a workflow. Read it freely; change it through its verbs, each one transaction."""

    id = models.UUIDField(primary_key=True, default=time_ordered_id, editable=False)
    tenant = NameField(_("tenant"), default="", blank=True)
    workflow = NameField(_("workflow"))
    version = NameField(_("version"), max_length=64)
    source_digest = models.CharField(max_length=64, default="", editable=False)
    key = NameField(_("key"), null=True)
    run = models.PositiveIntegerField(_("run"), default=1)
    # The first run of its chain: a start with the same key is compared with that run's input.
    chain_id = models.UUIDField()
    # A digest of (tenant, workflow, key) on the newest run of a chain, NULL on the others: three names of 255
    # four-byte characters do not fit into one PostgreSQL index row.
    current_key = models.CharField(max_length=64, null=True, unique=True, editable=False)

    status = models.CharField(_("status"), max_length=16, choices=Status.choices, default=Status.PENDING)
    queue = NameField(_("queue"))
    priority = models.SmallIntegerField(_("priority"), default=0)
    tags = models.JSONField(_("tags"), default=dict, blank=True)
    correlation_id = NameField(_("correlation id"), default="", blank=True)

    parent_id = models.UUIDField(null=True, db_index=True)
    parent_position = models.IntegerField(null=True)
    parent_item = models.IntegerField(null=True)
    parent_close = models.CharField(max_length=16, default="cancel")
    root_id = models.UUIDField()
    successor_id = models.UUIDField(null=True)
    forked_from = models.UUIDField(null=True)
    # Positions before it are copies: what was registered there (undo steps) belongs to the source.
    fork_position = models.IntegerField(null=True)

    # Counts intents: it grows exactly when a hint is written or withdrawn.
    revision = models.IntegerField(default=1)
    epoch = models.IntegerField(default=0)
    lease_token = models.UUIDField(null=True)
    worker = models.CharField(max_length=128, default="")
    claimed_at = models.DateTimeField(null=True)
    recoveries = models.IntegerField(default=0)
    max_recoveries = models.IntegerField(null=True)
    takeovers = models.TextField(default="[]")

    run_after = models.DateTimeField(null=True)
    # The time for which a schedule started it.
    scheduled_for = models.DateTimeField(_("scheduled for"), null=True)
    wake_at = models.DateTimeField(_("wakes at"), null=True)
    deadline = models.DateTimeField(_("deadline"), null=True)
    timeout_seconds = models.FloatField(null=True)
    # The channels that a waiting execution waits for, as a JSON list.
    awaiting = models.TextField(default="", blank=True)

    pause_requested_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(_("cancel requested at"), null=True)
    ending_as = models.CharField(max_length=16, default="", blank=True)
    failed_positions = models.TextField(default="", blank=True)
    # Digest of the code that blocked it: only other code looks again.
    blocked_by = models.CharField(max_length=16, default="", blank=True)

    # Of a singleton: its key within (tenant, workflow), how many may run at once, and whether this one is still
    # to be admitted. While it is, it has no hint.
    singleton = NameField(_("singleton key"), null=True)
    singleton_limit = models.PositiveIntegerField(default=0)
    in_line = models.BooleanField(_("waits for its singleton"), default=False)

    # What the run may spend, by name, as JSON.
    budget = models.TextField(default="", blank=True)
    seed = models.CharField(max_length=32, editable=False)
    encoded_input = models.TextField()
    encoded_output = models.TextField(null=True)
    encoded_error = models.TextField(null=True)

    # While it is copied to another plane nothing changes it; every verb says so.
    moving = models.BooleanField(default=False, editable=False)

    created_at = models.DateTimeField(_("created at"))
    started_at = models.DateTimeField(_("started at"), null=True)
    finished_at = models.DateTimeField(_("finished at"), null=True)

    objects = ExecutionQuerySet.as_manager()

    # Whether the call that returned this instance started it.
    is_new = False

    if TYPE_CHECKING:
        checkpoints: RelatedManager[Checkpoint]

    class Meta:
        verbose_name = _("execution")
        verbose_name_plural = _("executions")
        default_permissions = ("view",)
        permissions = [
            ("view_payload", _("Can see inputs, results and error texts")),
            ("start_execution", _("Can start executions")),
            ("signal_execution", _("Can send signals and updates")),
            ("cancel_execution", _("Can cancel executions")),
            ("pause_execution", _("Can pause and resume executions")),
            ("retry_execution", _("Can retry executions")),
            ("fork_execution", _("Can fork executions")),
            ("decide_approval", _("Can decide approvals")),
        ]
        indexes = [
            models.Index(fields=["status", "id"], name="durable_exec_status"),
            models.Index(fields=["tenant", "workflow", "id"], name="durable_exec_tenant"),
            # What people filter and search by; the last column is the order of every list.
            models.Index(fields=["workflow", "id"], name="durable_exec_workflow"),
            models.Index(fields=["queue", "id"], name="durable_exec_queue"),
            PartialIndex(fields=["key"], rows=models.Q(key__isnull=False), name="durable_exec_key"),
            # Only runs after the first: most chains have none, and a start pays nothing for it.
            PartialIndex(fields=["chain_id", "run"], rows=models.Q(run__gt=1), name="durable_exec_chain"),
            # For retention: what has ended, the oldest first; what belongs to a root. Others pay nothing.
            PartialIndex(
                fields=["finished_at", "id"], rows=models.Q(finished_at__isnull=False), name="durable_exec_finished"
            ),
            PartialIndex(fields=["root_id"], rows=~models.Q(root_id=models.F("id")), name="durable_exec_root"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} {self.key or self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("executions are changed by their verbs (signal, cancel, retry, …), not by save()")

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("executions are removed by `manage.py durable prune`, not by delete()")

    @property
    def using(self) -> str:
        """Alias of the database that this row was read from."""
        return self._state.db or "default"

    @property
    def is_terminal(self) -> bool:
        """Whether the execution has ended; only an operator's retry leaves failed, timed_out and dead."""
        return self.status in TERMINAL

    @property
    def input(self) -> dict[str, Any]:
        """The arguments of the start, by parameter name; a fresh copy."""
        from django_durable.payloads import decode

        arguments: dict[str, Any] = decode(self.encoded_input)
        return arguments

    @property
    def output(self) -> R | None:
        """The result; ``None`` unless completed."""
        from django_durable.payloads import decode

        if self.status != Status.COMPLETED or self.encoded_output is None:
            return None
        value: R = decode(self.encoded_output)
        return value

    @property
    def error(self) -> dict[str, Any] | None:
        """``{"type", "message", "traceback", …}``; ``None`` unless failed, timed_out, dead or blocked."""
        from django_durable.payloads import describe_failure

        if self.encoded_error is None:
            return None
        return describe_failure(self.encoded_error)

    def result(self, timeout: float | timedelta | None = None) -> R:
        """Wait for the end and return the result.

        Polls by primary key with back-off, up to ``timeout`` seconds (``TimeoutError``); without one, for ever.
        Raises ``ExecutionFailed``, ``ExecutionCancelled``; ``InvalidTransition`` inside a transaction, a turn or
        a step, where waiting could never end, unless the execution has already ended.
        """
        from django_durable.operators.result import wait_for_result

        value: R = wait_for_result(self, timeout)
        return value

    def signal(self, name: str, payload: Any = None, *, dedup_key: str | None = None) -> int:
        """Send a signal; returns the message's id once it is stored. Raises ``ExecutionClosed`` after the end."""
        from django_durable.operators.signal import send_signal

        return send_signal(self, name, payload, dedup_key=dedup_key)

    def send_update(self, name: str, payload: Any, *, timeout: float | timedelta | None = None) -> Any:
        """Send an update: its message's id once it is stored, or with ``timeout`` what the workflow replied.

        The workflow's validator is asked first, here: what it refuses (``UpdateRejected``, ``ValidationError``)
        leaves no trace. ``TimeoutError`` where no reply came in time: the update stays accepted. Raises
        ``ExecutionClosed`` after the end, also where it ends without a reply.
        """
        from django_durable.operators.update import send_update

        return send_update(self, name, payload, timeout=timeout)

    def decide(self, name: str, *, approved: bool, actor: Any, reason: str = "", data: Any = None) -> bool:
        """Decide the open approval of this name; ``False`` where it is decided already, or its time is over.

        Raises ``InvalidTransition`` where none of this name was requested, ``ExecutionClosed`` after the end,
        ``PermissionDenied`` for a user without the permission that the request names.
        """
        from django_durable.operators.decide import decide

        return decide(self, name, approved=approved, actor=actor, reason=reason, data=data)

    def value(self, key: str, default: Any = None) -> Any:
        """What the workflow last published with ``ctx.set_value(key, …)``."""
        from django_durable.operators.inspect import read_value

        return read_value(self, key, default)

    def budget_left(self) -> dict[str, Decimal]:
        """What is left of the run's budget, by name, after what is recorded."""
        from django_durable.operators.inspect import read_budget

        return read_budget(self)

    def history(self) -> list[dict[str, Any]]:
        """The checkpoints in order: position kind name status attempts started_at finished_at output error."""
        from django_durable.operators.inspect import read_history

        return read_history(self)

    def cancel(self, *, compensate: bool = True, actor: Any = None, reason: str = "") -> bool:
        """Cancel, after its undo steps where it has any; returns whether this call won.

        ``False``: it had ended, or its undo steps run already. With ``compensate=False`` it ends at once, in the
        middle of its undo steps too.
        """
        from django_durable.operators.cancel import cancel

        return cancel(self, compensate=compensate, actor=actor, reason=reason)

    def retry(self, *, actor: Any, reason: str = "") -> None:
        """Reopen a failed, timed out or dead execution with fresh budgets; once per dead letter.

        Where its undo has begun, only undo steps that failed or did not run go on.
        """
        from django_durable.operators.retry import retry

        retry(self, actor=actor, reason=reason)

    def pause(self, *, actor: Any, reason: str = "") -> None:
        """Stop at the next position and stay there until ``resume``."""
        from django_durable.operators.pause import pause

        pause(self, actor=actor, reason=reason)

    def resume(self, *, actor: Any = None) -> None:
        """Let a paused or blocked execution go on."""
        from django_durable.operators.resume import resume

        resume(self, actor=actor)

    def fork(self, *, from_position: int, actor: Any, reason: str = "", version: str | None = None) -> Execution[R]:
        """A new execution, without key, that begins with a copy of this history before ``from_position``."""
        from django_durable.operators.fork import fork

        return fork(self, from_position=from_position, actor=actor, reason=reason, version=version)

    def move_to_version(self, version: str, *, actor: Any, reason: str = "") -> None:
        """Go on with another version of the workflow; refused unless the history replays there."""
        from django_durable.operators.adopt import move_to_version

        move_to_version(self, version, actor=actor, reason=reason)

    def accept_code(self, *, actor: Any, reason: str = "") -> None:
        """Go on with the changed source of a pinned workflow; refused unless the history replays with it."""
        from django_durable.operators.adopt import accept_code

        accept_code(self, actor=actor, reason=reason)

    async def aresult(self, timeout: float | timedelta | None = None) -> R:
        """``result`` without blocking the event loop: it polls with ``asyncio.sleep``."""
        from django_durable.operators.result import await_result

        value: R = await await_result(self, timeout)
        return value

    async def asignal(self, name: str, payload: Any = None, *, dedup_key: str | None = None) -> int:
        """``signal`` for async code."""
        return await sync_to_async(self.signal)(name, payload, dedup_key=dedup_key)

    async def asend_update(self, name: str, payload: Any, *, timeout: float | timedelta | None = None) -> Any:
        """``send_update`` for async code."""
        return await sync_to_async(self.send_update)(name, payload, timeout=timeout)

    async def adecide(self, name: str, *, approved: bool, actor: Any, reason: str = "", data: Any = None) -> bool:
        """``decide`` for async code."""
        return await sync_to_async(self.decide)(name, approved=approved, actor=actor, reason=reason, data=data)

    async def avalue(self, key: str, default: Any = None) -> Any:
        """``value`` for async code."""
        return await sync_to_async(self.value)(key, default)

    async def abudget_left(self) -> dict[str, Decimal]:
        """``budget_left`` for async code."""
        return await sync_to_async(self.budget_left)()

    async def ahistory(self) -> list[dict[str, Any]]:
        """``history`` for async code."""
        return await sync_to_async(self.history)()

    async def acancel(self, *, compensate: bool = True, actor: Any = None, reason: str = "") -> bool:
        """``cancel`` for async code."""
        return await sync_to_async(self.cancel)(compensate=compensate, actor=actor, reason=reason)

    async def aretry(self, *, actor: Any, reason: str = "") -> None:
        """``retry`` for async code."""
        await sync_to_async(self.retry)(actor=actor, reason=reason)

    async def apause(self, *, actor: Any, reason: str = "") -> None:
        """``pause`` for async code."""
        await sync_to_async(self.pause)(actor=actor, reason=reason)

    async def afork(
        self, *, from_position: int, actor: Any, reason: str = "", version: str | None = None
    ) -> Execution[R]:
        """``fork`` for async code."""
        return await sync_to_async(self.fork)(
            from_position=from_position, actor=actor, reason=reason, version=version
        )

    async def amove_to_version(self, version: str, *, actor: Any, reason: str = "") -> None:
        """``move_to_version`` for async code."""
        await sync_to_async(self.move_to_version)(version, actor=actor, reason=reason)

    async def aaccept_code(self, *, actor: Any, reason: str = "") -> None:
        """``accept_code`` for async code."""
        await sync_to_async(self.accept_code)(actor=actor, reason=reason)

    async def aresume(self, *, actor: Any = None) -> None:
        """``resume`` for async code."""
        await sync_to_async(self.resume)(actor=actor)
