"""Composition: steps elsewhere, children, and futures of both."""

from __future__ import annotations

from typing import Any, ParamSpec, TypeVar, overload

from django_durable.authoring.call import Call, as_call
from django_durable.authoring.future import Future
from django_durable.authoring.operations.base import operation
from django_durable.authoring.operations.elsewhere import Elsewhere, cut_at
from django_durable.authoring.recorded_outcome import error_of, value_of
from django_durable.authoring.step import Step
from django_durable.authoring.workflow import Workflow
from django_durable.engine import elsewhere
from django_durable.engine.journal import Record
from django_durable.engine.transitions.call_off import call_off
from django_durable.engine.transitions.fan_in import at, failed_at
from django_durable.payloads import decode, encode

P = ParamSpec("P")
R = TypeVar("R")


class Composition(Elsewhere):
    """``ctx.submit``, ``ctx.gather``, ``ctx.child``."""

    @operation
    def child(self, workflow: Workflow[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run another workflow as a child and return its result.

        The child has this run's tenant and plane. It ends with this run unless it was given
        ``parent_close="abandon"``. Raises ``ChildFailed`` where it ends without a result, whatever the reason.
        """
        if not isinstance(workflow, Workflow):
            raise TypeError(f"a child is a workflow, not {type(workflow).__name__}; write ctx.step(…) for a step")
        call = as_call(workflow, args, kwargs)
        position = self._begun(call)
        result: R = self._outcome(position, call)
        return result

    @overload
    def submit(self, target: Call[R], /) -> Future[R]: ...
    @overload
    def submit(self, target: Step[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]: ...
    @overload
    def submit(self, target: Workflow[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]: ...
    @operation
    def submit(self, target: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Begin a step or a workflow elsewhere and go on; ``Future.result()`` waits for it.

        A step runs on its own queue, or on the execution's where it names none.
        """
        call = as_call(target, args, kwargs)
        return Future(call, self._begun(call), self._result_of)

    def _begun(self, call: Call[Any]) -> int:
        prepared = self._prepare(call)
        position, record = self._session.enter(call.kind, call.name)
        if record is None:
            self._begin(position, call, prepared)
        return position

    @operation
    def _result_of(self, future: Future[R]) -> R:
        with cut_at(self._session.position):
            result: R = self._outcome(future.position, future.call)
        return result

    @operation
    def gather(
        self, *futures: Future[Any], return_exceptions: bool = False, fail_fast: bool = False
    ) -> tuple[Any, ...]:
        """The results of all, in the order of the arguments.

        The first failure in that order is raised once all have ended. With ``fail_fast`` the first one that happens
        is raised at once, and the others are cancelled. With ``return_exceptions`` failures stand among the results.
        """
        for future in futures:
            if not isinstance(future, Future):
                raise TypeError(f"gather takes what ctx.submit() gave, not {type(future).__name__}")
        session = self._session
        position, record = session.enter("gather", "")
        if record is None:
            first = self._await_first_failure(futures) if fail_fast else None
            if first is None:
                self._await_all({future.position: future.call for future in futures})
            session.keep(position, "gather", "", encode(first, where="gather"))
        else:
            first = decode(record.encoded_output or "null")
        ended = [(session.history[future.position], future.call.name) for future in futures]
        with cut_at(position):
            if first is not None and not return_exceptions:
                value_of(*ended[first])
            return tuple(_results(ended, return_exceptions))

    def _await_first_failure(self, futures: tuple[Future[Any], ...]) -> int | None:
        """The index of the first that failed, the others called off; ``None`` once all have succeeded."""
        session = self._session
        calls = {future.position: future.call for future in futures}
        while True:
            records = {position: session.history[position] for position in calls}
            failed = [index for index, future in enumerate(futures) if records[future.position].status == "failed"]
            pending = [position for position, found in records.items() if found.status == "pending"]
            if failed:
                if pending:
                    self._call_off(pending)
                return failed[0]
            if not pending:
                return None
            if not self._expire_queued((records[p], calls[p]) for p in pending):
                elsewhere.await_results(
                    session,
                    pending,
                    _ended_or_failed,
                    awaiting=[[at(p) for p in pending], *(failed_at(p) for p in pending)],
                    wake_at=self._first_expiry((records[p], calls[p]) for p in pending),
                )

    def _call_off(self, positions: list[int]) -> None:
        session = self._session
        elsewhere.change_elsewhere(session, lambda: call_off(session.claim, positions))
        session.learn(elsewhere.look(session, positions))


def _ended_or_failed(records: Any) -> bool:
    return any(record.status == "failed" for record in records) or all(
        record.status != "pending" for record in records
    )


def _results(ended: list[tuple[Record, str]], return_exceptions: bool) -> list[Any]:
    if not return_exceptions:
        return [value_of(record, name) for record, name in ended]
    return [error_of(record, name) or value_of(record, name) for record, name in ended]
