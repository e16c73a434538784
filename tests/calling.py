"""Call ``manage.py durable`` in this process, as ``call_command`` does: its exit code and what it wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import StringIO
from typing import Any

from django.core.management import CommandError, call_command

__all__ = ["Called", "durable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """``error`` is what a shell's user would read last."""

    code: int
    out: str
    err: str
    error: str = ""

    @property
    def data(self) -> Any:
        """stdout as the one JSON document that it is."""
        return json.loads(self.out)


def durable(*arguments: Any, **options: Any) -> Called:
    """Run one verb."""
    out, err = StringIO(), StringIO()
    try:
        call_command("durable", *arguments, stdout=out, stderr=err, **options)
    except CommandError as error:
        return Called(code=error.returncode, out=out.getvalue(), err=err.getvalue(), error=str(error))
    return Called(code=0, out=out.getvalue(), err=err.getvalue())
