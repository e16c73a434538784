"""``manage.py durable VERB``: the door to ``django_durable.cli``."""

from __future__ import annotations

import os
import sys
import traceback
from argparse import SUPPRESS
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter

from django_durable.cli.exits import Exit, refusing, usage
from django_durable.cli.options import Options
from django_durable.cli.output import Output
from django_durable.cli.verbs import VERBS


def package_version() -> str:
    """The version, from the package's root, which is above every floor: asked for only when it is shown."""
    from django_durable import __version__

    return __version__


class UsageParser(CommandParser):
    """Gives a wrong call the same code from ``call_command`` as from a shell."""

    def error(self, message: str) -> NoReturn:
        """Exit with the usage, or raise ``CommandError``."""
        if self.called_from_command_line:
            super().error(message)
        raise usage(f"Error: {message}")

    @classmethod
    def made_of(cls, parser: CommandParser) -> UsageParser:
        """Django makes the parsers itself; this one refuses from now on as the others do."""
        parser.__class__ = cls
        assert isinstance(parser, cls)
        return parser


class DjangoOptions(BaseCommand):
    """Django's own options once more, for after the verb; without defaults, which would undo those before it."""

    def add_base_argument(self, parser: CommandParser, *args: Any, **kwargs: Any) -> None:
        """Declare one of them."""
        kwargs.pop("default", None)
        super().add_base_argument(parser, *args, **kwargs)

    def get_version(self) -> str:
        """This package's version."""
        return package_version()


class Command(BaseCommand):
    """One sub-parser a verb."""

    help = "Durable executions: run workers, start and inspect executions, act on them."

    def get_version(self) -> str:
        """This package's version."""
        return package_version()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the verbs."""
        late = UsageParser.made_of(DjangoOptions().create_parser("", "", add_help=False, argument_default=SUPPRESS))
        verbs = UsageParser.made_of(parser).add_subparsers(
            dest="verb", metavar="VERB", required=True, title="verbs", parser_class=UsageParser
        )
        for verb in VERBS.values():
            one = verbs.add_parser(
                verb.name,
                help=verb.summary,
                description=verb.summary,
                parents=[late],
                formatter_class=DjangoHelpFormatter,
            )
            verb.add_arguments(one)

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Checks that send no query: where a database is away, the verb says so and ends with its code."""
        super().check(*args, **{"databases": [], **kwargs})

    def run_from_argv(self, argv: list[str]) -> None:
        """Run from a shell; the exit code is the verb's also with ``--traceback``."""
        try:
            super().run_from_argv(argv)
        except CommandError as error:
            traceback.print_exc()
            sys.exit(error.returncode)
        except BrokenPipeError:
            # Whoever read stdout (head, less) has what it wanted. Python's own flush at exit must not complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(Exit.REFUSED)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the verb."""
        chosen = Options(options)
        output = Output(
            self.stdout,
            self.stderr,
            as_json=chosen.flag("json"),
            verbosity=chosen.number("verbosity") or 0,
        )
        with refusing():
            VERBS[options["verb"]].run(chosen, output)
        output.flush()
