"""Fan-out: one step or workflow over many items, so many at a time, each recorded by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar, overload

from django_durable.authoring.call import Call, as_call
from django_durable.authoring.future import Batch, Item
from django_durable.authoring.operations.base import operation
from django_durable.authoring.operations.elsewhere import Elsewhere, coded, queue_of
from django_durable.authoring.recorded_outcome import error_of, raise_failure, value_of
from django_durable.authoring.step import Step
from django_durable.authoring.workflow import Workflow
from django_durable.engine import elsewhere
from django_durable.engine.journal import Entry, Record, record_of, row_for
from django_durable.engine.transitions.family import store_order
from django_durable.engine.transitions.fan_in import at
from django_durable.engine.transitions.fan_out import Plan, begin_items, refill
from django_durable.engine.transitions.start import Order
from django_durable.models.checkpoint import WHOLE
from django_durable.payloads import apply_codecs
from django_durable.showing import shown

R = TypeVar("R")

CONCURRENCY = 20
MOST = 2**31 - 1
"""What fits into the column of a count."""


class Rule(NamedTuple):
    """When a map stops before its last item."""

    tolerated: int | None = None
    min_successful: int | None = None


class FanOut(Elsewhere):
    """``ctx.map``, ``ctx.map_batch``."""

    @overload
    def map(self, calls: Iterable[Call[R]], /, *, concurrency: int = ...) -> list[R]: ...
    @overload
    def map(
        self, target: Step[..., R] | Workflow[..., R], items: Iterable[Any], /, *, concurrency: int = ...
    ) -> list[R]: ...
    @operation
    def map(self, target: Any, items: Iterable[Any] | None = None, /, *, concurrency: int = CONCURRENCY) -> list[Any]:
        """Run a step or a workflow once for each item, or ready calls; the results in the order of the input.

        Items are taken and recorded once, when the position is first reached; at most ``concurrency`` of them are
        under way at a time. Once all have ended, the first failure in the order of the input is raised.
        """
        ended = self._map(target, items, concurrency, Rule())
        for item in ended:
            if item.status == "failed":
                raise_failure(item, item.name)
        return [value_of(item, item.name) for item in ended]

    @operation
    def map_batch(
        self,
        target: Any,
        items: Iterable[Any] | None = None,
        /,
        *,
        concurrency: int = CONCURRENCY,
        min_successful: int | None = None,
        tolerated_failures: int | None = None,
    ) -> Batch:
        """As ``map``, but failures do not raise, and it may stop early: once ``min_successful`` items have
        succeeded, or more than ``tolerated_failures`` have failed, no further item is started."""
        _check_count(min_successful, "min_successful", least=1)
        _check_count(tolerated_failures, "tolerated_failures", least=0)
        batch = Batch()
        for item in self._map(target, items, concurrency, Rule(tolerated_failures, min_successful)):
            if item.status == "completed":
                batch.succeeded.append(Item(index=item.item, value=value_of(item, item.name)))
            elif item.status == "failed":
                batch.failed.append(Item(index=item.item, error=error_of(item, item.name)))
            else:
                batch.not_started.append(Item(index=item.item))
        return batch

    def _map(self, target: Any, items: Iterable[Any] | None, concurrency: int, rule: Rule) -> list[Record]:
        """The items in their order, once no more of them will run."""
        _check_count(concurrency, "concurrency", least=1)
        calls = _calls_of(target, items)
        name = _name_of(target, calls)
        prepared = [self._prepare(call) for call in calls]
        session = self._session
        position, record = session.enter("map", name)
        if record is None:
            plan = Plan(position, len(calls), concurrency, rule.tolerated, rule.min_successful)
            self._begin_all(name, plan, list(zip(calls, prepared, strict=True)))
        elif session.only_follows and not record.is_over:
            session.stop_body()
        elif record.status == "pending":
            # A retry may have put items back that nobody else would start.
            elsewhere.change_elsewhere(session, lambda: refill(session.claim, position))
            session.learn(elsewhere.look(session, [position]))
        if session.history[position].status == "pending":
            self._await_items(position, calls)
        ended = session.items.get(position, {})
        return [ended[index] for index in sorted(ended)]

    def _begin_all(self, name: str, plan: Plan, items: Sequence[tuple[Call[Any], Order | str]]) -> None:
        session, position = self._session, plan.position
        now = session.claim.now()
        whole = row_for(session.claim, position, "map", name, "pending", started_at=now)
        if not items:
            session.append(position, "map", name, "completed", started_at=now, finished_at=now)
            session.learn([record_of({**whole, "status": "completed"}, session.claim.token)])
            return
        rows = [whole, *(self._item_row(position, index, *item) for index, item in enumerate(items))]
        elsewhere.start_elsewhere(session, rows, lambda: begin_items(session.claim.using, session.claim.row, plan))
        session.learn(elsewhere.look(session, [position]))  # which of them have been started

    def _item_row(self, position: int, index: int, call: Call[Any], prepared: Order | str) -> dict[str, Any]:
        row = row_for(self._session.claim, position, call.kind, call.name, "pending", item=index)
        if isinstance(prepared, Order):
            return {**row, "encoded_input": store_order(coded(prepared))}
        return {**row, "encoded_input": apply_codecs(prepared), "queue": queue_of(call)}

    def _await_items(self, position: int, calls: Sequence[Call[Any]]) -> None:
        session = self._session
        while not no_more(list(session.items[position].values())):
            begun = [(found, calls[index]) for index, found in session.items[position].items() if index < len(calls)]
            if not self._expire_queued(begun):
                expiry = self._first_expiry(begun)
                elsewhere.await_results(session, [position], no_more, awaiting=[at(position)], wake_at=expiry)
        whole = session.history[position]
        finished = {"status": "completed", "finished_at": session.claim.now()}
        session.record(Entry(whole, position, "map", whole.name, finished))
        whole.status = "completed"


def no_more(records: Sequence[Record]) -> bool:
    """Whether none of the items is under way; by the rule, or because all have ended."""
    return not any(r.status == "pending" and r.queued_at is not None for r in records if r.item > WHOLE)


def _calls_of(target: Any, items: Iterable[Any] | None) -> list[Call[Any]]:
    if items is not None:
        return [as_call(target, (item,), {}) for item in items]
    try:
        given = list(target)
    except TypeError:
        _refuse(target)
    if not all(isinstance(call, Call) for call in given):
        _refuse(next(call for call in given if not isinstance(call, Call)))
    return given


def _refuse(given: Any) -> NoReturn:
    raise TypeError(
        f"map takes a step or workflow and its items, or ready calls (step.bind(…)), not {type(given).__name__}"
    )


def _name_of(target: Any, calls: Sequence[Call[Any]]) -> str:
    """The name that all calls share; empty for a mixture, and for no calls at all."""
    names = {call.name for call in calls}
    if not names and not isinstance(target, (list, tuple)) and hasattr(target, "name"):
        return str(target.name)
    return names.pop() if len(names) == 1 else ""


def _check_count(number: Any, name: str, *, least: int) -> None:
    if number is None and name != "concurrency":
        return
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= MOST:
        raise ValueError(f"{name} must be a whole number from {least} to {MOST:,}, not {shown(number)}")
