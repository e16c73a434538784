"""Call: a step or workflow with its arguments, ready to be run somewhere: ``step.bind(…)``, ``workflow.bind(…)``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from django_durable.authoring.step import Step
    from django_durable.authoring.workflow import Workflow

R = TypeVar("R", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[R]):
    """What to run and with what; nothing is stored until somebody runs it."""

    target: Step[..., Any] | Workflow[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name

    @property
    def kind(self) -> str:
        """What its checkpoint is."""
        from django_durable.authoring.workflow import Workflow

        return "child" if isinstance(self.target, Workflow) else "step"


def as_call(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call[Any]:
    """A step, a workflow, a plain function or a ready call as a call. Raises ``TypeError`` for anything else."""
    from django_durable.authoring.step import as_step
    from django_durable.authoring.workflow import Workflow

    if isinstance(target, Call):
        if args or kwargs:
            raise TypeError("a ready call has its arguments already; give none beside it")
        return target
    if isinstance(target, Workflow):
        target.signature.bind(*args, **kwargs)
        return Call(target, args, kwargs)
    return Call(as_step(target), args, kwargs)
