"""requeue: give parked hints another chance."""

from __future__ import annotations

from argparse import ArgumentParser
from uuid import UUID

from django_durable.cli.exits import Exit, refusal
from django_durable.cli.options import Options, add_attribution
from django_durable.cli.output import Output
from django_durable.cli.verb import Verb
from django_durable.models import DispatchHint
from django_durable.operators.requeue import requeue
from django_durable.planes.location import read_id
from django_durable.planes.selection import spine_alias

__all__ = ["Requeue"]


class Requeue(Verb):
    """By the id of a hint, or of the execution whose hints are parked."""

    name = "requeue"
    summary = "Make parked hints due again, with fresh counters; prints their ids."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which, who and why."""
        parser.add_argument("parked_id", metavar="ID", help="the id of a hint, or of an execution")
        super().add_arguments(parser)
        add_attribution(parser)

    def run(self, options: Options, output: Output) -> None:
        """Requeue each; refused where none of them is parked."""
        wanted = read_id(str(options.raw("parked_id")))
        actor, reason = options.actor(), options.text("reason") or ""
        ids = [requeue(hint_id, actor=actor, reason=reason).pk for hint_id in _hints(wanted)]
        if output.as_json:
            output.document({"requeued": ids})
        else:
            for hint_id in ids:
                output.line(str(hint_id))


def _hints(wanted: UUID) -> list[UUID]:
    """The hint of this id, or the parked ones of the execution of this id; an unknown id is a hint's."""
    hints = DispatchHint.objects.using(spine_alias())
    of_execution = hints.filter(execution_id=wanted).order_by("id")
    if hints.filter(pk=wanted).exists() or not of_execution.exists():
        return [wanted]
    parked = list(of_execution.filter(state=DispatchHint.State.PARKED).values_list("pk", flat=True))
    if not parked:
        raise refusal(f"no hint of execution {wanted} is parked; there is nothing to requeue", Exit.REFUSED)
    return parked
