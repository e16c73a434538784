"""update: send a message that is checked first, and may be answered."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError

from django_durable.cli.exits import Exit, refusal
from django_durable.cli.options import Options, add_payloads
from django_durable.cli.output import Output
from django_durable.cli.verb import ExecutionVerb
from django_durable.models import Execution
from django_durable.operators.values import Values
from django_durable.payloads import encode

__all__ = ["Update"]


class Update(ExecutionVerb):
    """The payload arrives as the plain JSON value that was given."""

    name = "update"
    summary = "Send an update to an execution; prints the message's id, or waits for the reply."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Its name, what it carries, and how long to wait for the answer."""
        super().add_arguments(parser)
        parser.add_argument("update_name", metavar="NAME", help="the update's name")
        parser.add_argument("--payload", metavar="JSON", help="what it carries; by default null")
        parser.add_argument("--timeout", metavar="SECONDS", help="wait so long for the reply, and show it")
        add_payloads(parser)

    def act(self, execution: Execution[Any], options: Options, output: Output) -> None:
        """Send it; refused by its validator, and once the execution has ended."""
        timeout, name = options.duration("timeout"), options.name("update_name", "update name") or ""
        try:
            answer = execution.send_update(name, options.json("payload"), timeout=timeout)
        except ValidationError as error:
            raise refusal("; ".join(error.messages), Exit.REFUSED) from error
        except TimeoutError as error:
            raise refusal(str(error), Exit.REFUSED) from error
        if timeout is None:
            found: dict[str, Any] = {"id": execution.pk, "message_id": answer}
            line = str(answer)
        else:
            values = Values(payloads=options.flag("payloads"))
            shown = values.value(encode(answer, where="the reply"))
            found, line = {"id": execution.pk, "reply": shown}, str(shown)
        if output.as_json:
            output.document(found)
        else:
            output.line(line)
