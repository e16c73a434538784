"""Representations: what each address answers with."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from django_durable.models import Status
from django_durable.rest.fields import Value

__all__ = [
    "Approval",
    "CallbackDecided",
    "Checkpoint",
    "DeadLetter",
    "Event",
    "ExecutionDetail",
    "ExecutionRow",
    "Forked",
    "Hint",
    "Message",
    "Outcome",
    "Plane",
    "Problem",
    "Result",
    "Schedule",
    "Stats",
    "Triggered",
    "UpdateAnswer",
    "Workflow",
]

Out = serializers.Serializer[Any]
Text = serializers.CharField
Whole = serializers.IntegerField
Time = serializers.DateTimeField
Id = serializers.UUIDField


class ErrorShown(Out):
    """A stored error; without ``view_payload`` its texts are sizes."""

    type = Text()
    message = Text()
    traceback = Text()


class ExecutionRow(Out):
    """An execution in a list."""

    id = Id()
    workflow = Text()
    version = Text()
    status = serializers.ChoiceField(choices=Status.choices)
    key = Text(allow_null=True)
    run = Whole()
    tenant = Text(allow_blank=True)
    queue = Text()
    priority = Whole()
    tags = serializers.DictField(child=Value())
    correlation_id = Text(allow_blank=True)
    parent_id = Id(allow_null=True)
    created_at = Time()
    started_at = Time(allow_null=True)
    finished_at = Time(allow_null=True)
    wake_at = Time(allow_null=True)
    deadline = Time(allow_null=True)
    plane = Text(required=False, help_text="In lists, for operators of the whole installation.")


class Unread(Out):
    """What was sent and no wait has taken."""

    id = Whole()
    channel = Text()
    accepted_at = Time()


class ExecutionDetail(ExecutionRow):
    """One execution."""

    root_id = Id()
    successor_id = Id(allow_null=True)
    forked_from = Id(allow_null=True)
    fork_position = Whole(allow_null=True)
    run_after = Time(allow_null=True)
    cancel_requested_at = Time(allow_null=True)
    pause_requested_at = Time(allow_null=True)
    recoveries = Whole()
    revision = Whole()
    epoch = Whole()
    awaiting = serializers.ListField(child=Text(), help_text="The channels that it waits for.")
    input = Value(allow_null=True)
    output = Value(allow_null=True, help_text="null unless completed")
    error = serializers.DictField(
        child=Value(), allow_null=True, help_text="null unless failed, timed_out, dead or blocked"
    )
    unread = Unread(many=True)


class Checkpoint(Out):
    """One position of a history, or one item of it."""

    position = Whole()
    item = Whole(allow_null=True)
    kind = Text()
    name = Text(allow_blank=True)
    status = Text()
    attempts = Whole()
    started_at = Time(allow_null=True)
    finished_at = Time(allow_null=True)
    output = Value(allow_null=True)
    error = serializers.DictField(child=Value(), allow_null=True)


class Result(Out):
    """How far an execution is, and what came of it; of a chain, its current run."""

    id = Id()
    status = serializers.ChoiceField(choices=Status.choices)
    output = Value(allow_null=True)
    error = serializers.DictField(child=Value(), allow_null=True)


class ValueShown(Out):
    """A published value."""

    key = Text()
    value = Value(allow_null=True)


class Outcome(Out):
    """What a verb has come to."""

    id = Id()
    status = serializers.ChoiceField(choices=Status.choices)


class Message(Out):
    """A stored message; ``execution`` is the one that it was sent to."""

    execution = Id()
    message_id = Whole()


class UpdateAnswer(Message):
    """An update, and its reply where one was waited for and came."""

    reply = Value(required=False)


class Effect(Out):
    """A step that a fork may do a second time."""

    position = Whole()
    name = Text()


class Forked(Outcome):
    """The new execution."""

    forked_from = Id()
    from_position = Whole()
    effects_after = Effect(many=True, help_text="Steps that the other one completed at or after the cut.")


class Event(Out):
    """A published event."""

    event_id = Whole()
    name = Text()


class CallbackDecided(Out):
    """Whether this decision counts: an earlier one does, for ever."""

    decided = serializers.BooleanField()


class DeadLetter(Out):
    """An execution that ended without a result, once for each time it did."""

    id = Whole()
    execution_id = Id()
    generation = Whole()
    workflow = Text()
    version = Text()
    tenant = Text(allow_blank=True)
    correlation_id = Text(allow_blank=True)
    status = serializers.ChoiceField(choices=["failed", "timed_out", "dead"])
    recoveries = Whole()
    error = serializers.DictField(child=Value(), allow_null=True)
    created_at = Time()
    retried_at = Time(allow_null=True)
    retried_by = Text(allow_blank=True)
    plane = Text(required=False, help_text="For operators of the whole installation.")


class Hint(Out):
    """Work in flight, as the spine knows it."""

    id = Id()
    execution_id = Id()
    kind = serializers.ChoiceField(choices=["turn", "step"])
    state = serializers.ChoiceField(choices=["live", "leased", "blocked", "parked"])
    plane = Text(allow_blank=True)
    position = Whole(allow_null=True)
    revision = Whole()
    epoch = Whole()
    queue = Text()
    priority = Whole()
    due_at = Time(help_text="When it is due, or its lease ends.")
    owner = Text(allow_blank=True)
    failures = Whole()
    category = Text(allow_blank=True)


class Approval(Out):
    """What an execution asks a person for."""

    id = Whole()
    execution_id = Id()
    workflow = Text()
    tenant = Text(allow_blank=True)
    position = Whole()
    name = Text()
    prompt = Text(allow_blank=True)
    permission = Text(allow_blank=True)
    data = Value(allow_null=True)  # type: ignore[assignment]
    requested_at = Time()
    expires_at = Time(allow_null=True)
    plane = Text(required=False, help_text="For operators of the whole installation.")


class Plane(Out):
    """A database that holds executions."""

    name = Text()
    database = Text()
    state = serializers.ChoiceField(choices=["active", "draining", "closed"])
    generation = Whole()
    reachable = serializers.BooleanField()
    migrations_behind = Whole(allow_null=True)
    unfinished = Whole(allow_null=True)
    tenants = Whole()


class Schedule(Out):
    """When a workflow is started."""

    id = Id()
    name = Text()
    tenant = Text(allow_blank=True)
    workflow = Text()
    cron = Text(allow_blank=True)
    timezone = Text(allow_blank=True)
    every_seconds = serializers.FloatField(allow_null=True)
    overlap = Text()
    catch_up = Text()
    jitter_seconds = serializers.FloatField()
    next_at = Time()
    last_at = Time(allow_null=True)
    last_outcome = Text(allow_blank=True)
    paused_at = Time(allow_null=True)
    paused_by = Text(allow_blank=True)
    plane = Text(required=False, help_text="In lists, for operators of the whole installation.")


class Triggered(Outcome):
    """The execution that was started."""

    schedule_id = Id()


class Parameter(Out):
    """One parameter of a workflow."""

    name = Text()
    annotation = Text(allow_null=True)
    required = serializers.BooleanField()  # type: ignore[assignment]


class Workflow(Out):
    """A workflow that REST may start."""

    name = Text()
    version = Text()
    newest = serializers.BooleanField()
    queue = Text()
    priority = Whole()
    timeout = serializers.FloatField(allow_null=True)
    parameters = Parameter(many=True)


class Stats(Out):
    """How much there is to do; counting stops at 100,000."""

    statuses = serializers.DictField(child=Whole())
    ready = Whole()
    oldest_ready_seconds = serializers.FloatField(allow_null=True)
    running = Whole()
    sleeping = Whole()
    blocked = Whole()
    parked = Whole()
    unpublished = Whole()
    open_dead_letters = Whole()
    last_tick_seconds = serializers.FloatField(allow_null=True)
    planes = serializers.DictField(child=serializers.DictField(child=Value(allow_null=True)), required=False)
    unavailable = serializers.ListField(child=Text())


class Problem(Out):
    """Problem details, RFC 9457."""

    type = Text()
    title = Text()
    status = Whole()
    code = Text(help_text="A stable slug: what went wrong.")
    detail = Text()
    errors = serializers.DictField(child=Value(), required=False, help_text="By the place in the input.")  # type: ignore[assignment]
    actor = Text(required=False, help_text="Who was first.")
