"""What may be declared as a step or a workflow: a plain function, and nothing that only looks like one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any


def check_function(function: Any, what: str) -> Callable[..., Any]:
    """Refuse coroutines, generators, methods, partials and callable objects, naming what was given.

    Raises ``TypeError``.
    """
    name = getattr(function, "__qualname__", None) or type(function).__name__
    if isinstance(function, (staticmethod, classmethod)):
        raise TypeError(f"{what} {name!r} is a {type(function).__name__}; declare a module-level function")
    if isinstance(function, partial):
        raise TypeError(f"a {what} cannot be a functools.partial; declare a function with these arguments")
    if inspect.ismethod(function):
        raise TypeError(f"{what} {name!r} is a method; declare a module-level function")
    if not isinstance(function, FunctionType):
        raise TypeError(f"a {what} must be a plain function, not {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{what} {name!r} is a coroutine function; declare it with def, not async def")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{what} {name!r} is a generator function; return a list instead of yielding")
    scope = function.__qualname__.rpartition(".")[0]
    if scope and not scope.endswith("<locals>"):
        raise TypeError(f"{what} {name!r} is a method of a class; declare a module-level function")
    return function


def is_nested(function: Callable[..., Any]) -> bool:
    """Whether a function is a lambda or was made inside another function: no other process can find it."""
    return "<locals>" in function.__qualname__ or function.__name__ == "<lambda>"
