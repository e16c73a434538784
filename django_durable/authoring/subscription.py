"""Subscription: a workflow that is started by an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django_durable.authoring.debounce import Debounce
from django_durable.authoring.portion import Portion
from django_durable.authoring.registry import all_workflows, find_workflow

if TYPE_CHECKING:
    from django_durable.authoring.workflow import Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What ``Workflow.on_event`` says of one event: how a payload becomes a key and arguments."""

    event: str
    key: Callable[[Any], str | None] | None = None
    args: Callable[[Any], Any] | None = None
    debounce: Debounce | None = None
    portion: Portion | None = None

    @property
    def gathers(self) -> bool:
        """Whether a run is started for several events."""
        return self.debounce is not None or self.portion is not None

    def arguments(self, payload: Any, *, takes_any: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the start: a tuple or list is by position, a mapping by name, anything else the first.

        Without ``args`` the workflow gets the payload, or nothing where it takes nothing.
        """
        if self.args is None:
            return ((payload,) if takes_any else ()), {}
        chosen = self.args(payload)
        if isinstance(chosen, Mapping):
            return (), dict(chosen)
        if isinstance(chosen, (tuple, list)):
            return tuple(chosen), {}
        return (chosen,), {}


def subscribers(event: str) -> list[tuple[Workflow[..., Any], Subscription]]:
    """The workflows that this event starts, each in its newest version, with what the newest declaration says."""
    found: dict[str, Subscription] = {}
    for workflow in all_workflows():
        subscription = workflow.subscriptions.get(event)
        if subscription is not None:
            found[workflow.name] = subscription
    return [(find_workflow(name), subscription) for name, subscription in found.items()]
