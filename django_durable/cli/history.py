"""history: every checkpoint of one execution."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django_durable.cli.options import Options, add_payloads
from django_durable.cli.output import Output
from django_durable.cli.verb import ExecutionVerb
from django_durable.models import Checkpoint, Execution
from django_durable.operators.values import Values

__all__ = ["History", "outcome", "read_checkpoints"]


class History(ExecutionVerb):
    """The keys are those of ``Execution.history()``."""

    name = "history"
    summary = "Show every position of an execution: what it was, how it went, what came of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How much of it."""
        super().add_arguments(parser)
        add_payloads(parser)

    def act(self, execution: Execution[Any], options: Options, output: Output) -> None:
        """Show it in order."""
        entries = read_checkpoints(execution, Values(payloads=options.flag("payloads")))
        if output.as_json:
            output.document(entries)
            return
        rows = [{**entry, "outcome": outcome(entry)} for entry in entries]
        output.table(rows, ["position", "kind", "name", "status", "attempts", "started_at", "finished_at", "outcome"])


def outcome(entry: dict[str, Any]) -> Any:
    """The output, or the error in one line."""
    error = entry["error"]
    return entry["output"] if error is None else f"{error['type']}: {error['message']}"


def read_checkpoints(execution: Execution[Any], values: Values) -> list[dict[str, Any]]:
    """The checkpoints in order; one whose value cannot be read stands among the others."""
    rows = Checkpoint.objects.using(execution.using).filter(execution_id=execution.pk)
    return [
        {
            "position": row.position,
            "kind": row.kind,
            "name": row.name,
            "status": row.status,
            "attempts": row.attempt,
            "started_at": row.started_at,
            "finished_at": row.finished_at,
            "output": values.value(row.encoded_output),
            "error": values.error(row.encoded_error),
        }
        for row in rows.order_by("position", "item")
    ]
