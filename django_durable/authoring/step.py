"""Step: a function whose result is recorded once and for ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, overload

from django_durable.authoring.call import Call
from django_durable.authoring.declaration import check_function, is_nested
from django_durable.authoring.place import refuse_in_body
from django_durable.authoring.registry import add_step, find_step
from django_durable.authoring.retry import Retry, default_retry
from django_durable.dispatch.flow_queue import FlowQueue, queue_name
from django_durable.durations import seconds
from django_durable.models.columns import check_name
from django_durable.payloads import register_annotations

P = ParamSpec("P")
R = TypeVar("R")

Duration = float | timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """How a step runs. Durations are seconds."""

    retry: Retry | None = None
    timeout: float | None = None
    total_timeout: float | None = None
    queue_timeout: float | None = None
    heartbeat_timeout: float | None = None
    queue: str | None = None
    limit: str | None = None
    transactional: bool = False
    at_most_once: bool = False


class Step(Generic[P, R]):
    """A declared step. Call it and it is the function; run it durably with ``ctx.step(the_step, …)``."""

    def __init__(self, func: Callable[P, R], name: str, options: StepOptions) -> None:
        self.func = func
        self.name = name
        self.options = options
        update_wrapper(self, func)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        refuse_in_body(f"step {self.name!r}", f"write ctx.step({self.func.__name__}, …)")
        return self.func(*args, **kwargs)

    def run(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The body as one attempt calls it; a turn comes through here, user code does not."""
        return self.func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Step {self.name}>"

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """This step with its arguments, ready for ``ctx.submit`` and ``ctx.map``."""
        return Call(self, args, kwargs)

    @property
    def retry(self) -> Retry:
        """The policy in force."""
        return self.options.retry or default_retry()

    def using(self, **options: Any) -> Step[P, R]:
        """A copy with other options: the same name, so the same place in a history."""
        return Step(self.func, self.name, _merged(self.options, options))


def _merged(base: StepOptions, options: dict[str, Any]) -> StepOptions:
    for name in ("timeout", "total_timeout", "queue_timeout", "heartbeat_timeout"):
        if options.get(name) is not None:
            options[name] = seconds(options[name], name=name)
    if options.get("retry") is not None and not isinstance(options["retry"], Retry):
        raise TypeError(f"retry must be a Retry, not {type(options['retry']).__name__}")
    if options.get("queue") is not None:
        options["queue"] = check_name(queue_name(options["queue"]), "queue")
    if options.get("limit") is not None:
        options["queue"] = options["limit"] = _limit_of(options, base)
    merged = replace(base, **options)
    if merged.transactional and merged.at_most_once:
        raise ValueError("a step is transactional or at_most_once, not both: a transaction is exactly once")
    if merged.transactional and merged.queue:
        raise ValueError("a transactional step runs in its execution's turn; it cannot name a queue")
    return merged


def _limit_of(options: dict[str, Any], base: StepOptions) -> str:
    """The queue with limits, in which the step's attempts then wait: a hint waits in one queue."""
    limit = check_name(queue_name(options["limit"]), "limit")
    queue = options.get("queue") or base.queue
    if queue not in (None, limit, base.limit):
        raise ValueError(f"a step with limit {limit!r} waits in that queue; leave out queue={queue!r}")
    return limit


@overload
def step(func: Callable[P, R], /) -> Step[P, R]: ...
@overload
def step(
    func: Callable[P, R],
    /,
    *,
    name: str | None = ...,
    retry: Retry | None = ...,
    timeout: Duration | None = ...,
    total_timeout: Duration | None = ...,
    queue_timeout: Duration | None = ...,
    heartbeat_timeout: Duration | None = ...,
    queue: str | FlowQueue | None = ...,
    limit: str | FlowQueue | None = ...,
    transactional: bool = ...,
    at_most_once: bool = ...,
) -> Step[P, R]: ...
@overload
def step(
    name: str | None = None,
    /,
    *,
    retry: Retry | None = ...,
    timeout: Duration | None = ...,
    total_timeout: Duration | None = ...,
    queue_timeout: Duration | None = ...,
    heartbeat_timeout: Duration | None = ...,
    queue: str | FlowQueue | None = ...,
    limit: str | FlowQueue | None = ...,
    transactional: bool = ...,
    at_most_once: bool = ...,
) -> Callable[[Callable[P, R]], Step[P, R]]: ...
def step(func: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
    """Declare a step: ``@step``, ``@step(retry=…)``, ``@step("name")``, or ``step(function, name="name")``.

    Without a name it is called ``<module>.<function>``; a lambda or nested function needs one. Refuses with
    ``TypeError`` what is no plain function, with ``ValueError`` a second definition of a name.
    """
    if isinstance(func, str):
        func, name = None, func
    if name is not None:
        check_name(name, "step name")
    merged = _merged(StepOptions(), options)
    if func is None:
        return lambda function: _declare(function, name, merged)
    return _declare(func, name, merged)


def _declare(func: Any, name: str | None, options: StepOptions) -> Step[..., Any]:
    if isinstance(func, Step):
        func = func.func
    function = check_function(func, "step")
    if name is None and is_nested(function):
        raise TypeError(
            f"step {function.__qualname__!r} is a lambda or a nested function;"
            ' give it a name of its own: step(function, name="…")'
        )
    declared: Step[..., Any] = Step(function, name or f"{function.__module__}.{function.__name__}", options)
    check_name(declared.name, "step name")
    add_step(declared)
    register_annotations(function)
    return declared


def as_step(target: Any) -> Step[..., Any]:
    """What ``ctx.step`` was given, as a step: a declared one, or a plain module-level function."""
    from django_durable.authoring.workflow import Workflow

    if isinstance(target, Step):
        return target
    if isinstance(target, Workflow):
        raise TypeError(f"{target.name!r} is a workflow, not a step; write ctx.child({target.func.__name__}, …)")
    if not callable(target):
        raise TypeError(f"a step is declared with @step, or is a plain function, not {type(target).__name__}")
    known = find_step(f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', '')}")
    if known is not None and known.func is target:
        return known
    declared: Step[..., Any] = step(target)
    return declared
