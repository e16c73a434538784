"""timed: how long each transaction of a block was open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["timed"]


@contextmanager
def timed(connection: Any) -> Iterator[list[float]]:
    """How long each transaction of the block was open; a statement of its own counts as one."""
    lengths: list[float] = []
    switch, opened = connection.set_autocommit, [0.0]

    def switched(autocommit: bool, **options: Any) -> None:
        switch(autocommit, **options)
        if autocommit:
            lengths.append(time.perf_counter() - opened[0])
        else:
            opened[0] = time.perf_counter()

    def statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        began = time.perf_counter()
        result = execute(sql, params, many, context)
        if not connection.in_atomic_block:
            lengths.append(time.perf_counter() - began)
        return result

    connection.set_autocommit = switched
    try:
        with connection.execute_wrapper(statement):
            yield lengths
    finally:
        del connection.set_autocommit
