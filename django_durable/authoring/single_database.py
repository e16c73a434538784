"""A transactional step writes on its plane's database only: a write elsewhere would not be atomic with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import connections

from django_durable.errors import WrongDatabase

_READS = re.compile(
    r"\s*(?:--[^\n]*\n|/\*.*?\*/|\(|\s)*(?:SELECT|SHOW|EXPLAIN|PRAGMA|SAVEPOINT|RELEASE|ROLLBACK|BEGIN|COMMIT|SET)\b",
    re.I | re.S,
)
_LOCKS = re.compile(r"\bFOR\s+(?:NO\s+KEY\s+)?UPDATE\b", re.I)


@contextmanager
def only_writes_on(using: str, step: str) -> Iterator[None]:
    """Refuse with ``WrongDatabase`` any statement on another alias that is not a plain read."""

    def refuse(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        text = str(sql)
        if not _READS.match(text) or _LOCKS.search(text):
            alias = context["connection"].alias
            raise WrongDatabase(
                f"transactional step {step!r} writes on {alias!r}, but its transaction is on {using!r};"
                " move this write into a step of its own"
            )
        return execute(sql, params, many, context)

    with ExitStack() as stack:
        for connection in connections.all():
            if connection.alias != using:
                stack.enter_context(connection.execute_wrapper(refuse))
        yield
