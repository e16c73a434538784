"""show: one execution, for somebody who wants to know what is the matter with it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django_durable.cli.history import outcome, read_checkpoints
from django_durable.cli.options import Options, add_payloads
from django_durable.cli.output import Output, printable
from django_durable.cli.verb import ExecutionVerb
from django_durable.models import Checkpoint, DeadLetter, Execution, OperatorNote
from django_durable.operators.adopt import has_other_source
from django_durable.operators.unread import unread_messages
from django_durable.operators.values import Values
from django_durable.planes.places import place_on
from django_durable.planes.registry import planes_in_use

__all__ = ["Show"]

FIELDS = (
    "id",
    "workflow",
    "version",
    "status",
    "key",
    "run",
    "tenant",
    "queue",
    "priority",
    "tags",
    "correlation_id",
    "parent_id",
    "root_id",
    "successor_id",
    "forked_from",
    "fork_position",
    "created_at",
    "started_at",
    "finished_at",
    "wake_at",
    "deadline",
    "run_after",
    "scheduled_for",
    "cancel_requested_at",
    "pause_requested_at",
    "worker",
    "claimed_at",
    "recoveries",
    "revision",
    "epoch",
)
TIMELINE = ("position", "kind", "name", "status", "attempts", "started_at", "duration")


class Show(ExecutionVerb):
    """Its row, its timeline, who took it over, what nobody read, its open dead letter, what operators did."""

    name = "show"
    summary = "Show one execution with its timeline, take-overs, dead letter and operators' notes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How much of it."""
        super().add_arguments(parser)
        add_payloads(parser)

    def act(self, execution: Execution[Any], options: Options, output: Output) -> None:
        """Show it."""
        values = Values(payloads=options.flag("payloads"))
        found = {
            **{name: getattr(execution, name) for name in FIELDS},
            **({"plane": place_on(execution.using).label} if planes_in_use() else {}),
            "source": source_of(execution),
            "awaiting": read_list(execution.awaiting),
            "input": values.value(execution.encoded_input),
            "output": values.value(execution.encoded_output),
            "error": values.error(execution.encoded_error, status=execution.status),
            "checkpoints": timeline(execution, values),
            "takeovers": read_list(execution.takeovers),
            "unread": unread_messages(execution),
            "dead_letter": open_letter(execution),
            "notes": notes(execution),
        }
        if output.as_json:
            output.document(found)
        else:
            write(found, output)


def source_of(execution: Execution[Any]) -> str:
    """Whether the code here is what it was started with."""
    changed = has_other_source(execution)
    if changed is None:
        return "not here"
    return "changed since its start" if changed else "as at its start"


def timeline(execution: Execution[Any], values: Values) -> list[dict[str, Any]]:
    """The positions with how long each took; values are read only where they are shown."""
    if values.payloads:
        rows = read_checkpoints(execution, values)
    else:
        found = Checkpoint.objects.using(execution.using).filter(execution_id=execution.pk)
        plain = found.order_by("position", "item").values(
            "position", "kind", "name", "status", "attempt", "started_at", "finished_at"
        )
        rows = [{**row, "attempts": row.pop("attempt")} for row in map(dict, plain)]
    for row in rows:
        ended = row["started_at"] is not None and row["finished_at"] is not None
        row["duration"] = row["finished_at"] - row["started_at"] if ended else None
    return rows


def open_letter(execution: Execution[Any]) -> dict[str, Any] | None:
    """The dead letter that waits for an operator."""
    letters = DeadLetter.objects.using(execution.using).filter(execution_id=execution.pk, retried_at=None)
    newest = letters.order_by("-generation").values("id", "generation", "status", "created_at").first()
    return None if newest is None else dict(newest)


def notes(execution: Execution[Any]) -> list[dict[str, Any]]:
    """Who did what and why, in order."""
    rows = OperatorNote.objects.using(execution.using).filter(execution_id=execution.pk)
    return [dict(row) for row in rows.order_by("at", "id").values("at", "verb", "actor", "reason")]


def read_list(text: str) -> list[Any]:
    return json.loads(text) if text else []


def write(found: dict[str, Any], output: Output) -> None:
    """The same as text; what is empty is left out."""
    sections = ("checkpoints", "takeovers", "unread", "dead_letter", "notes", "error")
    facts = {name: value for name, value in found.items() if name not in sections and value not in ("", [], {})}
    output.pairs(facts)
    if found["error"]:
        write_error(found["error"], output)
    if found["checkpoints"]:
        output.line("\ntimeline")
        write_timeline(found["checkpoints"], output)
    if found["takeovers"]:
        output.line("\ntake-overs")
        output.table(found["takeovers"], ["worker", "start", "end", "reason"], indent="  ")
    if found["unread"]:
        output.line("\nunread messages")
        output.table(found["unread"], ["id", "channel", "accepted_at"], indent="  ")
    if found["dead_letter"]:
        output.line("\nopen dead letter")
        output.pairs(found["dead_letter"], indent="  ")
    if found["notes"]:
        output.line("\noperators")
        output.table(found["notes"], ["at", "verb", "actor", "reason"], indent="  ")


def write_timeline(checkpoints: list[dict[str, Any]], output: Output) -> None:
    if "output" in checkpoints[0]:
        rows = [{**row, "outcome": outcome(row)} for row in checkpoints]
        output.table(rows, [*TIMELINE, "outcome"], indent="  ")
    else:
        output.table(checkpoints, TIMELINE, indent="  ")


def write_error(error: dict[str, Any], output: Output) -> None:
    output.line("\nerror")
    output.pairs({name: text for name, text in error.items() if name != "traceback"}, indent="  ")
    for line in str(error["traceback"]).splitlines():
        output.line("  " + printable(line))
