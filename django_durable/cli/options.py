"""Options: what the caller asked for, from a shell's texts or from ``call_command``'s Python values.

Both go through the same conversions, so both meet the same refusals.
"""

from __future__ import annotations

import getpass
import json
import math
import os
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_datetime

from django_durable.cli.exits import reading_arguments, usage
from django_durable.durations import aware, seconds
from django_durable.models.columns import check_name

__all__ = ["Options", "add_attribution", "add_execution", "add_json", "add_paging", "add_payloads"]

PAGE, LARGEST_PAGE = 50, 1000


class Options:
    """The options of one call. Every method raises the usage error that names the option."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def raw(self, name: str) -> Any:
        """The option as it came; ``None`` where it was not given."""
        return self._given.get(name)

    def flag(self, name: str) -> bool:
        """Whether a switch is on."""
        return bool(self._given.get(name))

    def text(self, name: str) -> str | None:
        """A text, or ``None``."""
        value = self.raw(name)
        return None if value is None else str(value)

    def name(self, name: str, what: str) -> str | None:
        """A name of something, of a form that every database can store; or ``None``."""
        value = self.text(name)
        with reading_arguments():
            return None if value is None else check_name(value, what)

    def number(self, name: str, *, least: int | None = None, most: int | None = None) -> int | None:
        """A whole number within bounds, or ``None``."""
        value = self.raw(name)
        if value is None:
            return None
        try:
            number = int(str(value))
        except ValueError:
            raise usage(f"{dashed(name)} must be a whole number, not {value!r}") from None
        if (least is not None and number < least) or (most is not None and number > most):
            limits = f"at least {least}" if most is None else f"from {least} to {most}"
            raise usage(f"{dashed(name)} must be {limits}, not {number}")
        return number

    def names(self, name: str) -> tuple[str, ...]:
        """Names from ``a,b``, from a list, or both (an option given twice); none where it was not given."""
        value = self.raw(name)
        if value is None:
            return ()
        parts = [value] if isinstance(value, str) else value
        found = [one.strip() for part in parts for one in str(part).split(",")]
        if not all(found):
            raise usage(f"{dashed(name)} must be names separated by commas, not {value!r}")
        return tuple(found)

    def json(self, name: str, default: Any = None) -> Any:
        """A JSON value: text is parsed, a Python value is taken as it is."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value, parse_float=finite_float, parse_constant=finite_float)
        except ValueError as error:
            raise usage(f"{dashed(name)} must be JSON: {error}") from None
        except RecursionError:
            raise usage(f"{dashed(name)} is nested too deeply") from None

    def uuid(self, name: str) -> UUID | None:
        """An execution's id, or ``None``."""
        value = self.raw(name)
        if value is None or isinstance(value, UUID):
            return value
        try:
            return UUID(str(value))
        except ValueError:
            raise usage(f"{dashed(name)} must be an execution id (a UUID), not {value!r}") from None

    def moment(self, name: str) -> datetime | float | None:
        """An aware time in ISO 8601, or a number of seconds from now; ``None`` where it was not given."""
        value = self.raw(name)
        if isinstance(value, str):
            value = parse_moment(name, value)
        if isinstance(value, datetime) and value.utcoffset() is None:
            text = value.isoformat()
            raise usage(f"{dashed(name)} {text} has no time zone; write {text}Z, or an offset like {text}+02:00")
        try:
            if value is None or isinstance(value, datetime):
                return None if value is None else aware(value, name=dashed(name))
            return seconds(value, name=dashed(name))
        except (TypeError, ValueError) as error:
            raise usage(str(error)) from None

    def duration(self, name: str) -> float | None:
        """A number of seconds, or ``None``."""
        value = self.raw(name)
        try:
            if value is None:
                return None
            return seconds(float(value) if isinstance(value, str) else value, name=dashed(name))
        except (TypeError, ValueError) as error:
            raise usage(f"{dashed(name)} must be a number of seconds: {error}") from None

    def actor(self) -> str:
        """Who acts: ``--actor``, or the user of the operating system."""
        value = self.raw("actor")
        if value is None:
            return system_user()
        name = str(value.get_username() if hasattr(value, "get_username") else value)
        if not name.strip():
            raise usage("--actor must name who acts; leave it out for the user of the operating system")
        return name


def finite_float(text: str) -> float:
    """A number as it stands; refused where a float would be infinite instead, or no JSON number at all."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} has no finite float; quote it, or write it as the workflow's annotation takes it")
    return number


def parse_moment(name: str, text: str) -> datetime | float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = parse_datetime(text)
    except ValueError:  # well formed, and no time that exists
        moment = None
    if moment is None:
        raise usage(f"{dashed(name)} must be a time in ISO 8601 or a number of seconds, not {text!r}")
    return moment


def system_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container whose user id has no name
        return f"uid {os.getuid()}"


def dashed(name: str) -> str:
    return "--" + name.replace("_", "-")


def add_json(parser: ArgumentParser) -> None:
    """``--json``."""
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")


def add_payloads(parser: ArgumentParser) -> None:
    """``--payloads``."""
    parser.add_argument(
        "--payloads",
        action="store_true",
        help="show values and error texts; without it, their type and size",
    )


def add_execution(parser: ArgumentParser) -> None:
    """The one positional argument of a verb on one execution."""
    parser.add_argument("execution_id", metavar="ID", help="the execution's id")


def add_attribution(parser: ArgumentParser) -> None:
    """``--actor`` and ``--reason``."""
    parser.add_argument("--actor", help="who does it; by default the user of the operating system")
    parser.add_argument("--reason", default="", help="why; kept with the execution")


def add_paging(parser: ArgumentParser, what: str) -> None:
    """``--limit`` and ``--after``."""
    parser.add_argument(
        "--limit", default=PAGE, metavar="N", help=f"how many, at most (1 to {LARGEST_PAGE}, default {PAGE})"
    )
    parser.add_argument("--after", metavar="ID", help=f"only {what} that come after this one: the next page")
