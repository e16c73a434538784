"""cancel, retry, pause, resume, fork: an operator's verbs, each attributed."""

from __future__ import annotations

from abc import abstractmethod
from argparse import ArgumentParser
from typing import Any

from django_durable.cli.exits import Exit, refusal, usage
from django_durable.cli.options import Options, add_attribution
from django_durable.cli.output import Output
from django_durable.cli.verb import ExecutionVerb
from django_durable.models import Execution
from django_durable.operators.chain import current_run
from django_durable.operators.fork import effects_after
from django_durable.operators.resume import resume

__all__ = ["Cancel", "Fork", "Pause", "Resume", "Retry"]


class OperatorVerb(ExecutionVerb):
    """Who and why go into the execution's notes; the status afterwards goes to stdout."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """``--actor`` and ``--reason``."""
        super().add_arguments(parser)
        add_attribution(parser)

    def act(self, execution: Execution[Any], options: Options, output: Output) -> None:
        """Do it, to the current run of its chain, and show what came of it."""
        execution = current_run(execution)
        self.change(execution, options, actor=options.actor(), reason=options.text("reason") or "")
        if output.as_json:
            output.document({"id": execution.pk, "status": execution.status})
        else:
            output.line(execution.status)

    @abstractmethod
    def change(self, execution: Execution[Any], options: Options, *, actor: str, reason: str) -> None:
        """The verb itself."""


class Cancel(OperatorVerb):
    """Ends an execution from outside."""

    name = "cancel"
    summary = "Cancel an execution; refused where it has ended or is being cancelled."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whether to undo."""
        super().add_arguments(parser)
        parser.add_argument("--no-compensate", action="store_true", help="end at once, without undo steps")

    def change(self, execution: Execution[Any], options: Options, *, actor: str, reason: str) -> None:
        """Cancel it, or say that somebody or something else was first."""
        compensate = not options.flag("no_compensate")
        if not execution.cancel(compensate=compensate, actor=actor, reason=reason):
            raise refusal(f"execution {execution.pk} is {execution.status}; there is nothing to cancel", Exit.REFUSED)


class Retry(OperatorVerb):
    """Reopens what ended in failure."""

    name = "retry"
    summary = "Retry a failed, timed out or dead execution, once for each of its dead letters."

    def change(self, execution: Execution[Any], options: Options, *, actor: str, reason: str) -> None:
        """Retry it."""
        execution.retry(actor=actor, reason=reason)


class Pause(OperatorVerb):
    """Stops an execution at its next position."""

    name = "pause"
    summary = "Pause an execution; a running one stops at its next position."

    def change(self, execution: Execution[Any], options: Options, *, actor: str, reason: str) -> None:
        """Pause it."""
        execution.pause(actor=actor, reason=reason)


class Resume(OperatorVerb):
    """Lets an execution go on."""

    name = "resume"
    summary = "Let a paused or blocked execution go on, past a breakpoint if it stands at one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """With which code."""
        super().add_arguments(parser)
        parser.add_argument(
            "--workflow-version", metavar="VERSION", help="go on with this version, where the history replays there"
        )
        parser.add_argument(
            "--accept-code", action="store_true", help="of a pinned workflow: go on with the source it has now"
        )

    def change(self, execution: Execution[Any], options: Options, *, actor: str, reason: str) -> None:
        """Change its code where that is asked for; resume it where that does not let it go on by itself."""
        version, accepts = options.text("workflow_version"), options.flag("accept_code")
        if version is not None and accepts:
            raise usage("--workflow-version and --accept-code exclude each other")
        if version is not None:
            execution.move_to_version(version, actor=actor, reason=reason)
        if accepts:
            execution.accept_code(actor=actor, reason=reason)
        if execution.status == "paused" or not (version or accepts):
            resume(execution, actor=actor, reason=reason)


class Fork(ExecutionVerb):
    """Tries the rest of an execution again, in one of its own."""

    name = "fork"
    summary = "Start an execution with a copy of another's first positions; prints its id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to cut, and with which code."""
        super().add_arguments(parser)
        add_attribution(parser)
        parser.add_argument("--from-position", required=True, metavar="N", help="the first position to do again")
        parser.add_argument(
            "--workflow-version", metavar="VERSION", help="this version, where the copied positions replay there"
        )

    def act(self, execution: Execution[Any], options: Options, output: Output) -> None:
        """Fork it, and tell what the fork may do a second time."""
        position = options.number("from_position", least=0)
        if position is None:
            raise usage("--from-position is required")
        version = options.text("workflow_version")
        reason = options.text("reason") or ""
        forked = execution.fork(from_position=position, actor=options.actor(), reason=reason, version=version)
        effects = [{"position": mark.position, "name": mark.name} for mark in effects_after(execution, position)]
        if output.as_json:
            output.document(
                {"id": forked.pk, "forked_from": execution.pk, "from_position": position, "effects_after": effects}
            )
            return
        output.line(str(forked.pk))
        for effect in effects:
            output.talk(f"completed in {execution.pk} at or after the cut: {effect['position']} {effect['name']}")
