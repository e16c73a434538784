"""Workflow: a plain function that survives its process."""

from __future__ import annotations

import inspect
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property, partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from asgiref.sync import sync_to_async

from django_durable.authoring.budget import budget_text, check_budget
from django_durable.authoring.call import Call
from django_durable.authoring.debounce import Debounce, as_debounce
from django_durable.authoring.declaration import check_function
from django_durable.authoring.one_database import check_transaction
from django_durable.authoring.one_transaction import in_one_transaction
from django_durable.authoring.options import StartOptions, WorkflowOptions, check_priority, checked
from django_durable.authoring.place import refuse_in_body
from django_durable.authoring.portion import as_portion
from django_durable.authoring.registry import add_workflow, label_of, source_digest
from django_durable.authoring.schedule import UNANCHORED, Declared, policy_of
from django_durable.authoring.singleton import as_singleton
from django_durable.authoring.subscription import Subscription
from django_durable.authoring.timing import timing_of
from django_durable.clock import read_now
from django_durable.conf import config
from django_durable.dispatch.flow_queue import FlowQueue, queue_name
from django_durable.durations import seconds
from django_durable.engine.messages import send
from django_durable.engine.reach import reaching
from django_durable.engine.transitions.start import Order, start
from django_durable.errors import ExecutionNotFound, TenantRequired, WrongDatabase
from django_durable.models import Execution
from django_durable.models.columns import check_name
from django_durable.models.execution import ExecutionQuerySet
from django_durable.models.schedule import SCHEDULE_NAME_LENGTH
from django_durable.payloads import decode, encode, encode_plain, register_annotations
from django_durable.planes.selection import plane_alias

if TYPE_CHECKING:
    from django_durable.authoring.context import Context

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V", bound=Callable[..., Any])
Validator = Callable[[Any, Execution[Any]], object]
Duration = float | timedelta

_VERSION = re.compile(r"\d+(\.\d+)*")


class Workflow(Generic[P, R]):
    """A declared workflow: ``start`` it, ``get`` its executions by key, ``signal`` them."""

    def __init__(
        self,
        func: Callable[Concatenate[Context, P], R],
        name: str | None,
        version: str,
        options: WorkflowOptions,
        start_options: StartOptions | None = None,
    ) -> None:
        self.func = func
        self.version = version
        self.options = options
        self.start_options = start_options or StartOptions()
        self._name = name
        # Shared by the copies that ``using`` makes.
        self.validators: dict[str, Validator] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.schedules: dict[tuple[str, str], Declared] = {}
        update_wrapper(self, func)

    @property
    def named(self) -> bool:
        """Whether the declaration gives the name."""
        return self._name is not None

    @cached_property
    def name(self) -> str:
        """The declared name, or ``<app label>.<function>``."""
        return self._name or check_name(f"{label_of(self.func.__module__)}.{self.func.__name__}", "workflow name")

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature without the context."""
        whole = inspect.signature(self.func)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    @cached_property
    def source_digest(self) -> str:
        """A digest of the function's source."""
        return source_digest(self.func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        refuse_in_body(f"workflow {self.name!r}", f"write ctx.child({self.func.__name__}, …)")
        return self.func(*args, **kwargs)

    def run(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """The body as a turn calls it; user code does not come through here."""
        return self.func(ctx, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<Workflow {self.name} version {self.version}>"

    def using(self, **options: Any) -> Workflow[P, R]:
        """A copy with options for its starts: key, on_conflict, tenant, run_after, priority, queue, timeout, ….

        Raises ``ValueError`` or ``TypeError`` for a value that could not be stored or honoured.
        """
        unknown = set(options) - set(StartOptions.__dataclass_fields__)
        if unknown:
            raise TypeError(
                f"using() got {', '.join(sorted(unknown))}; it takes {', '.join(StartOptions.__dataclass_fields__)}"
            )
        chosen = checked(replace(self.start_options, **options))
        copy: Workflow[P, R] = Workflow(self.func, self.name, self.version, self.options, chosen)
        copy.validators, copy.subscriptions = self.validators, self.subscriptions
        copy.schedules = self.schedules
        return copy

    def validator(self, update_name: str) -> Callable[[V], V]:
        """Decorate ``fn(payload, execution)``, which is asked in the sender before an update is stored.

        It refuses by raising ``UpdateRejected`` or ``ValidationError``: nothing is stored then. No replay asks it.
        """
        check_name(update_name, "update name")

        def register(function: V) -> V:
            self.validators[update_name] = check_function(function, "validator")
            return function

        return register

    def on_event(
        self,
        name: str,
        *,
        key: Callable[[Any], str | None] | None = None,
        args: Callable[[Any], Any] | None = None,
        debounce: Duration | Debounce | None = None,
        batch: tuple[int, Duration] | None = None,
    ) -> None:
        """Start this workflow, in its newest version, once for each event of this name, with its publication.

        ``key(payload)`` is the execution's key: one run for all events of one key. ``args(payload)`` are its
        arguments, a tuple or a dict by name; by default the payload is the only one.

        ``debounce``, a duration or ``Debounce(quiet, at_most)``: one run with the last payload once no event of the
        key has come for so long. ``batch=(n, window)``: one run with a list of up to n payloads, or of those that
        came within the window; ``args(payload)`` is one item of it. Both start a key's next run after the end of the
        one before. Raises ``TypeError`` and ``ValueError`` for anything else, and for both at once.
        """
        check_name(name, "event name")
        if debounce is not None and batch is not None:
            raise ValueError(f"on_event({name!r}) takes debounce or batch, not both")
        for option, function in (("key", key), ("args", args)):
            if function is not None and not callable(function):
                raise TypeError(f"{option} must be a function of the payload, not {type(function).__name__}")
        self.subscriptions[name] = Subscription(
            event=name, key=key, args=args, debounce=as_debounce(debounce), portion=as_portion(batch)
        )

    def schedule(
        self,
        name: str,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        timezone: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        tenant: str | None = None,
        overlap: str = "skip",
        catch_up: str | tuple[str, int] = "latest",
        jitter: Duration | None = None,
    ) -> None:
        """Start this workflow, in its newest version, at each time of a cron expression or after each interval.

        ``name`` is the schedule's identity for its tenant: each of its times starts one execution, once, whatever
        restarts, is edited or runs twice. ``timezone`` is that of ``cron``, by default ``TIME_ZONE``. ``overlap``
        says what a time does while an earlier execution runs: skip, queue, cancel_running, allow. ``catch_up`` says
        which times are made good that nobody was there for: none, latest, all (100 at most), ("all", n). ``jitter``
        delays each time by up to so much.

        Raises ``ValueError``, ``TypeError`` for what could not be honoured, and for arguments that do not fit.
        """
        timing = timing_of(cron=cron, every=every, timezone=timezone, anchor=UNANCHORED)
        policy = policy_of(overlap, catch_up, jitter, every=timing.every)
        bound = self.signature.bind(*args, **(kwargs or {}))
        declared = Declared(
            name=check_name(name, "schedule name", maximum=SCHEDULE_NAME_LENGTH),
            tenant="" if tenant is None else check_name(tenant, "tenant"),
            workflow=self,
            arguments=dict(bound.arguments),
            timing=timing,
            policy=policy,
        )
        self.schedules[declared.identity] = declared

    def start(self, *args: P.args, **kwargs: P.kwargs) -> Execution[R]:
        """Accept the work, in the caller's transaction on the plane; the body never runs in the caller.

        Once per (tenant, workflow, key): the same key returns the existing execution. Raises ``TypeError`` for
        arguments that do not fit, ``UnserializableValue``, ``PayloadTooLarge``, ``ExecutionConflict``,
        ``WrongDatabase``.
        """
        refuse_in_body(f"{self.name}.start()", f"write ctx.child({self.func.__name__}, …)")
        bound = self.signature.bind(*args, **kwargs)
        return self.start_bound(dict(bound.arguments))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """This workflow with its arguments, ready for ``start_many``, ``ctx.submit`` and ``ctx.map``."""
        self.signature.bind(*args, **kwargs)
        return Call(self, args, kwargs)

    def start_many(self, calls: Iterable[Call[R]]) -> list[Execution[R]]:
        """Start each of these calls of this workflow, all of them or none; in their order.

        Raises what ``start`` raises, for the first call that cannot be started; ``WrongDatabase`` where their tenants
        live on several databases.
        """
        chosen = [(self._own(call), call) for call in calls]
        aliases = {self.alias(target.start_options.tenant) for target, _call in chosen}
        if len(aliases) > 1:
            raise WrongDatabase(
                "start_many starts all or none, which only one database can promise; the tenants of these calls live"
                f" on {', '.join(sorted(aliases))}: call it once for each"
            )
        starts = partial(_start_each, chosen)
        return in_one_transaction(aliases.pop(), starts) if aliases else []

    def _own(self, call: Call[R]) -> Workflow[..., R]:
        target = call.target if isinstance(call, Call) else None
        if not isinstance(target, Workflow) or target.func is not self.func:
            raise TypeError(f"start_many takes calls of {self.name!r}: {self.func.__name__}.bind(…)")
        return target

    def order_of_child(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], tenant: str, now: Callable[[], datetime]
    ) -> Order:
        """What is stored of a start as a child, its input before any codec.

        Raises ``ValueError`` for another tenant than its parent's.
        """
        if self.start_options.tenant not in (None, tenant):
            raise ValueError(
                f"a child has its parent's tenant {tenant!r}, not {self.start_options.tenant!r}; start a keyed"
                " execution for another tenant inside a step"
            )
        bound = self.signature.bind(*args, **kwargs)
        plain = encode_plain(dict(bound.arguments), where=f"input of workflow {self.name!r}")
        return replace(self._order(plain, now, lambda: dict(bound.arguments)), tenant=tenant)

    def order_of_fire(
        self, using: str, arguments: dict[str, Any], *, tenant: str, key: str, scheduled_for: datetime
    ) -> Order:
        """What is stored of a start by a schedule. Raises ``TenantRequired``."""
        self.alias(tenant)
        encoded = encode(arguments, where=f"input of workflow {self.name!r}")
        order = self._order(encoded, lambda: read_now(using), lambda: arguments)
        return replace(order, tenant=tenant, key=key, scheduled_for=scheduled_for)

    def order_of_input(self, encoded: str, tenant: str, now: Callable[[], datetime]) -> Order:
        """What is stored of a start whose input is encoded already."""
        return replace(self._order(encoded, now, lambda: decode(encoded)), tenant=tenant)

    def start_bound(self, arguments: dict[str, Any]) -> Execution[R]:
        """Start with arguments that are bound to parameter names already."""
        alias = self.alias(self.start_options.tenant)
        check_transaction(alias)
        encoded = encode(arguments, where=f"input of workflow {self.name!r}")
        with reaching(alias):
            order = self._order(encoded, lambda: read_now(alias), lambda: arguments)
            execution: Execution[R] = start(alias, order)
        return execution

    def get(self, key: str, *, tenant: str | None = None) -> Execution[R]:
        """The current run of a key's chain. Raises ``ExecutionNotFound``."""
        check_name(key, "key")
        alias = self.alias(tenant)
        order = Order(
            workflow=self.name,
            version="",
            source_digest="",
            encoded_input="",
            queue="",
            priority=0,
            tenant=tenant or "",
            key=key,
        )
        with reaching(alias):
            found: Any = Execution._base_manager.using(alias).filter(current_key=order.current_key).first()
        if found is None:
            raise ExecutionNotFound(f"workflow {self.name!r} has no execution with key {key!r}")
        return cast("Execution[R]", found)

    def signal(self, key: str, name: str, payload: Any = None, /, *, tenant: str | None = None) -> int:
        """Send a signal to the current run of a key; the message's id."""
        return self.get(key, tenant=tenant).signal(name, payload)

    def signal_or_start(self, name: str, payload: Any, /, *args: P.args, **kwargs: P.kwargs) -> Execution[R]:
        """Start the key's execution if it has none, and send it the signal, in one transaction."""
        if self.start_options.key is None:
            raise ValueError("signal_or_start needs a key: workflow.using(key=…).signal_or_start(…)")
        check_name(name, "signal name")
        encoded = encode(payload, where=f"payload of signal {name!r}")
        alias = self.alias(self.start_options.tenant)

        def start_and_send() -> Execution[R]:
            execution = self.start(*args, **kwargs)
            send(alias, execution.pk, f"signal:{name}", encoded)
            return execution

        return in_one_transaction(alias, start_and_send)

    async def astart(self, *args: P.args, **kwargs: P.kwargs) -> Execution[R]:
        """``start`` for async code."""
        return await sync_to_async(self.start)(*args, **kwargs)

    async def aget(self, key: str, *, tenant: str | None = None) -> Execution[R]:
        """``get`` for async code."""
        return await sync_to_async(self.get)(key, tenant=tenant)

    async def asignal(self, key: str, name: str, payload: Any = None, /, *, tenant: str | None = None) -> int:
        """``signal`` for async code."""
        return await sync_to_async(self.signal)(key, name, payload, tenant=tenant)

    async def asignal_or_start(self, name: str, payload: Any, /, *args: P.args, **kwargs: P.kwargs) -> Execution[R]:
        """``signal_or_start`` for async code."""
        return await sync_to_async(self.signal_or_start)(name, payload, *args, **kwargs)

    @property
    def executions(self) -> ExecutionQuerySet:
        """This workflow's executions on the selected plane."""
        return Execution.objects.using(plane_alias("")).filter(workflow=self.name)

    def alias(self, tenant: str | None) -> str:
        """The database that holds this tenant's executions. Raises ``TenantRequired``."""
        if not tenant and config().untenanted == "refuse":
            raise TenantRequired(f"workflow {self.name!r} was started without a tenant; pass using(tenant=…)")
        return plane_alias(tenant or "")

    def _order(
        self, encoded_input: str, now: Callable[[], datetime], arguments: Callable[[], dict[str, Any]]
    ) -> Order:
        chosen = self.start_options
        run_after = chosen.run_after
        if run_after is not None and not isinstance(run_after, datetime):
            run_after = now() + timedelta(seconds=seconds(run_after, name="run_after"))
        return Order(
            workflow=self.name,
            version=self.version,
            source_digest=self.source_digest,
            encoded_input=encoded_input,
            queue=queue_name(chosen.queue or "") or self.options.queue or config().default_queue,
            priority=self.options.priority if chosen.priority is None else chosen.priority,
            tenant=chosen.tenant or "",
            key=chosen.key,
            on_conflict=chosen.on_conflict,
            run_after=run_after,
            timeout_seconds=chosen.timeout if chosen.timeout is not None else self.options.timeout,
            max_recoveries=self.options.max_recoveries,
            tags=chosen.tags,
            correlation_id=chosen.correlation_id,
            parent_close=chosen.parent_close,
            budget=budget_text(self.options.budget if chosen.budget is None else chosen.budget),
            **self._singleton_columns(arguments),
        )

    def _singleton_columns(self, arguments: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if self.options.singleton is None:
            return {}
        bound = inspect.BoundArguments(self.signature, OrderedDict(arguments()))
        return self.options.singleton.columns(bound.args, bound.kwargs)


def _start_each(chosen: Iterable[tuple[Workflow[..., R], Call[R]]]) -> list[Execution[R]]:
    return [target.start(*call.args, **call.kwargs) for target, call in chosen]


@overload
def workflow(func: Callable[Concatenate[Context, P], R], /) -> Workflow[P, R]: ...
@overload
def workflow(
    name: str | None = None,
    /,
    *,
    version: str = ...,
    timeout: Duration | None = ...,
    queue: str | FlowQueue | None = ...,
    priority: int = ...,
    max_recoveries: int | None = ...,
    budget: Any = ...,
    singleton: Any = ...,
    pin: bool = ...,
    rest: bool = ...,
) -> Callable[[Callable[Concatenate[Context, P], R]], Workflow[P, R]]: ...
def workflow(func: Any = None, /, *, version: str = "1", **options: Any) -> Any:
    """Declare a workflow: ``@workflow``, ``@workflow(version="2")`` or ``@workflow("name")``.

    The function's first parameter is the context. Versions are dotted integers; every registered version stays
    runnable, and a run keeps its version. Refuses with ``TypeError`` what is no plain function.
    """
    name = None
    if isinstance(func, str):
        func, name = None, check_name(func, "workflow name")
    if not isinstance(version, str) or not _VERSION.fullmatch(version) or len(version) > 64:
        raise ValueError(f"version must be dotted integers like '1' or '2.10', not {version!r}")
    if options.get("timeout") is not None:
        options["timeout"] = seconds(options["timeout"], name="timeout")
    options["singleton"] = as_singleton(options.get("singleton"))
    if options.get("queue") is not None:
        options["queue"] = check_name(queue_name(options["queue"]), "queue")
    check_priority(options.get("priority"))
    options["budget"] = check_budget(options.get("budget"))
    chosen = WorkflowOptions(**options)
    if func is None:
        return lambda function: _declare(function, name, version, chosen)
    return _declare(func, name, version, chosen)


def _declare(func: Any, name: str | None, version: str, options: WorkflowOptions) -> Workflow[..., Any]:
    function = check_function(func, "workflow")
    if not inspect.signature(function).parameters:
        raise TypeError(f"workflow {function.__qualname__!r} takes no parameter; its first one is the context")
    check_name(function.__name__, "workflow name")
    declared: Workflow[..., Any] = Workflow(function, name, version, options)
    add_workflow(declared)
    register_annotations(function)
    return declared
