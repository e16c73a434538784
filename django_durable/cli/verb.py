"""Verb: one thing that ``manage.py durable`` does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser
from typing import Any, ClassVar

from django_durable.cli.options import Options, add_execution, add_json
from django_durable.cli.output import Output
from django_durable.models import Execution

__all__ = ["ExecutionVerb", "Verb"]


class Verb(ABC):
    """Its name, its line in ``--help``, its options, and what it does.

    ``run`` raises what the engine raises; the command turns that into exit codes.
    """

    name: ClassVar[str]
    summary: ClassVar[str]

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options. A positional's ``dest`` must be no other verb's option: ``call_command``
        looks at all verbs' options together."""
        add_json(parser)

    @abstractmethod
    def run(self, options: Options, output: Output) -> None:
        """Do it."""


class ExecutionVerb(Verb):
    """A verb on one execution, whose id is its positional argument."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The id, and what the verb itself takes."""
        add_execution(parser)
        super().add_arguments(parser)

    def run(self, options: Options, output: Output) -> None:
        """Find the execution, on whatever plane it lives, and act."""
        self.act(Execution.objects.locate(str(options.raw("execution_id"))), options, output)

    @abstractmethod
    def act(self, execution: Execution[Any], options: Options, output: Output) -> None:
        """Do it to this execution."""
