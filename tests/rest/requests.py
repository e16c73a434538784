"""Every address with every method that it has, each with a request that would be granted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django_durable import Execution
from django_durable.models import DeadLetter, DispatchHint
from django_durable.operators.schedules.verbs import add
from tests.driving import USING
from tests.rest.flows import run
from tests.rest.visitors import BASE, EXECUTIONS, of

__all__ = ["ENDPOINTS", "Endpoint", "Request", "parked_hint"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One that is ready to be sent. ``execution`` is what it is about, if anything."""

    method: str
    url: str
    body: dict[str, Any] | None = None
    execution: Execution[Any] | None = None

    def send(self, client: Any, **headers: str) -> Any:
        return getattr(client, self.method)(self.url, self.body, **({"headers": headers} if headers else {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """``permission`` is the one that it needs, ``status`` what a granted request is answered with."""

    permission: str
    prepare: Callable[..., Request]
    status: int = 200
    of_one_tenant: bool = True


def about(what: str, *parts: str, body: dict[str, Any] | None = None) -> Callable[..., Request]:
    """A request about an execution that has come so far; ``POST`` where it has a body."""

    def prepare(**using: Any) -> Request:
        execution = run(what, **using)
        return Request(
            method="get" if body is None else "post", url=of(execution, *parts), body=body, execution=execution
        )

    return prepare


def plain(url: str, body: dict[str, Any] | None = None) -> Callable[..., Request]:
    """A request about no execution in particular; there is one all the same."""

    def prepare(**using: Any) -> Request:
        return Request(method="get" if body is None else "post", url=url, body=body, execution=run("fail", **using))

    return prepare


def retry_letter(**using: Any) -> Request:
    execution = run("fail", **using)
    letter = DeadLetter.objects.using(execution.using).get(execution_id=execution.pk)
    url = f"{BASE}dead-letters/{letter.pk}/retry/"
    return Request(method="post", url=url, body={"reason": "again"}, execution=execution)


def parked_hint(**using: Any) -> DispatchHint:
    from tests.rest.flows import job

    execution = job.using(**using).start()
    hints = DispatchHint.objects.using(USING).filter(execution_id=execution.pk)
    hints.update(state=DispatchHint.State.PARKED, failures=10, category="plane-unresolved")
    return hints.get()


def requeue(**using: Any) -> Request:
    hint = parked_hint(**using)
    return Request(
        method="post",
        url=f"{BASE}hints/{hint.pk}/requeue/",
        body={"reason": "again"},
        execution=Execution.objects.locate(hint.execution_id),
    )


def on_schedule(verb: str) -> Callable[..., Request]:
    """A request about a schedule; ``execution`` is one that is there by chance."""

    def prepare(tenant: str | None = None) -> Request:
        schedule = add("nightly", "rest.job", actor="eve", tenant=tenant, every=3600)
        if verb == "resume":
            schedule.pause(actor="eve")
        url = f"{BASE}schedules/{schedule.pk}/{verb}/"
        return Request(method="post", url=url, body={"reason": "why"}, execution=run(tenant=tenant))

    return prepare


ENDPOINTS: dict[str, Endpoint] = {
    "list": Endpoint(permission="view_execution", prepare=plain(EXECUTIONS)),
    "detail": Endpoint(permission="view_execution", prepare=about("wait")),
    "history": Endpoint(permission="view_execution", prepare=about("publish", "history")),
    "children": Endpoint(permission="view_execution", prepare=about("child", "children")),
    "result": Endpoint(permission="view_execution", prepare=about("", "result")),
    "value": Endpoint(permission="view_execution", prepare=about("publish", "values", "pro/gress")),
    "workflows": Endpoint(permission="view_execution", prepare=plain(f"{BASE}workflows/")),
    "schema": Endpoint(permission="view_execution", prepare=plain(f"{BASE}schema/")),
    "stats": Endpoint(permission="view_execution", prepare=plain(f"{BASE}stats/"), of_one_tenant=False),
    "dead-letters": Endpoint(permission="view_deadletter", prepare=plain(f"{BASE}dead-letters/")),
    "hints": Endpoint(permission="view_dispatchhint", prepare=plain(f"{BASE}hints/"), of_one_tenant=False),
    "approvals": Endpoint(permission="view_approvalrequest", prepare=plain(f"{BASE}approvals/")),
    "planes": Endpoint(permission="view_dataplane", prepare=plain(f"{BASE}planes/"), of_one_tenant=False),
    "start": Endpoint(permission="start_execution", prepare=plain(EXECUTIONS, {"workflow": "rest.job"}), status=201),
    "signal": Endpoint(permission="signal_execution", prepare=about("wait", "signal", body={"name": "go"})),
    "update": Endpoint(
        permission="signal_execution", prepare=about("update", "update", body={"name": "add", "payload": 1})
    ),
    "publish": Endpoint(permission="signal_execution", prepare=plain(f"{BASE}events/", {"name": "paid"}), status=201),
    "cancel": Endpoint(permission="cancel_execution", prepare=about("wait", "cancel", body={"reason": "why"})),
    "pause": Endpoint(permission="pause_execution", prepare=about("wait", "pause", body={"reason": "why"})),
    "resume": Endpoint(permission="pause_execution", prepare=about("break", "resume", body={"reason": "why"})),
    "retry": Endpoint(permission="retry_execution", prepare=about("fail", "retry", body={"reason": "why"})),
    "retry letter": Endpoint(permission="retry_execution", prepare=retry_letter),
    "fork": Endpoint(
        permission="fork_execution", prepare=about("publish", "fork", body={"from_position": 0}), status=201
    ),
    "decide": Endpoint(
        permission="decide_approval", prepare=about("ask", "decide", body={"name": "ok", "approved": True})
    ),
    "schedules": Endpoint(permission="view_schedule", prepare=plain(f"{BASE}schedules/")),
    "pause schedule": Endpoint(permission="manage_schedules", prepare=on_schedule("pause")),
    "resume schedule": Endpoint(permission="manage_schedules", prepare=on_schedule("resume")),
    "trigger schedule": Endpoint(permission="manage_schedules", prepare=on_schedule("trigger"), status=201),
    "requeue": Endpoint(permission="requeue_hint", prepare=requeue, of_one_tenant=False),
}
"""By name. Callbacks are not here: they need a token, and nothing else."""
