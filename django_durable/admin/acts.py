"""Act: an operator's verb as the admin offers it. What it does and whether it may is decided further down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_durable.engine.transitions import SOURCES
from django_durable.errors import InvalidTransition
from django_durable.models import Execution, OperatorNote
from django_durable.operators.cancel import cancel
from django_durable.operators.pause import pause
from django_durable.operators.resume import resume
from django_durable.operators.retry import retry

__all__ = ["ACTS", "Act"]


class Act(ABC):
    """One verb: its words, the executions it is offered for, and its call."""

    verb: ClassVar[str]
    """The verb's name in the table of permissions, in addresses and in notes."""
    label: ClassVar[Promise]
    effect: ClassVar[Promise]
    """What happens, for whoever is about to confirm it."""

    @abstractmethod
    def fits(self, execution: Execution[Any]) -> bool:
        """Whether it is worth offering, by the row at hand. The engine decides, by the row as it is then."""

    @abstractmethod
    def perform(self, execution: Execution[Any], *, actor: Any, reason: str) -> str:
        """Do it; what came of it. Raises ``InvalidTransition`` where somebody or something was first."""


class Retry(Act):
    """Reopens what ended in failure."""

    verb = "retry"
    label = gettext_lazy("Retry")
    effect = gettext_lazy(
        "What is recorded is kept and does not run again; what ended the run is removed and runs anew, with fresh"
        " attempts, recoveries and deadline. Of several operators one wins."
    )

    def fits(self, execution: Execution[Any]) -> bool:
        return execution.status in (*SOURCES["reopen"], *SOURCES["unblock"])

    def perform(self, execution: Execution[Any], *, actor: Any, reason: str) -> str:
        retry(execution, actor=actor, reason=reason)
        return _("Execution %(id)s is retried.") % {"id": execution.pk}


class Cancel(Act):
    """Ends an execution from outside."""

    verb = "cancel"
    label = gettext_lazy("Cancel")
    effect = gettext_lazy(
        "The execution ends, after its undo steps where it has registered any. A step that is running may finish; its"
        " result is refused. This cannot be taken back."
    )

    def fits(self, execution: Execution[Any]) -> bool:
        return execution.status in SOURCES["cancel"] and not execution.ending_as

    def perform(self, execution: Execution[Any], *, actor: Any, reason: str) -> str:
        if not cancel(execution, compensate=True, actor=actor, reason=reason):
            raise self._lost(execution)
        if not execution.is_terminal:
            return _("Execution %(id)s is being cancelled: its undo steps run first.") % {"id": execution.pk}
        return _("Execution %(id)s is cancelled.") % {"id": execution.pk}

    def _lost(self, execution: Execution[Any]) -> InvalidTransition:
        notes = OperatorNote.objects.using(execution.using).filter(execution_id=execution.pk, verb=self.verb)
        actor = notes.order_by("-at", "-id").values_list("actor", flat=True).first()
        facts = {"id": execution.pk, "status": execution.get_status_display(), "actor": actor}
        if actor and execution.cancel_requested_at is not None:
            text = _("Execution %(id)s is %(status)s; it was cancelled by %(actor)s already.")
        else:
            text = _("Execution %(id)s is %(status)s; there is nothing to cancel.")
        return InvalidTransition(text % facts, actor=actor)


class Pause(Act):
    """Stops an execution at its next position."""

    verb = "pause"
    label = gettext_lazy("Pause")
    effect = gettext_lazy(
        "The execution stops; a running one first records the result in hand. What arrives meanwhile is kept."
    )

    def fits(self, execution: Execution[Any]) -> bool:
        asked = execution.pause_requested_at is not None or execution.ending_as
        return execution.status in SOURCES["pause"] and not asked

    def perform(self, execution: Execution[Any], *, actor: Any, reason: str) -> str:
        pause(execution, actor=actor, reason=reason)
        if execution.status == "running":
            return _("Execution %(id)s pauses at its next position.") % {"id": execution.pk}
        return _("Execution %(id)s is paused.") % {"id": execution.pk}


class Resume(Act):
    """Lets an execution go on."""

    verb = "resume"
    label = gettext_lazy("Resume")
    effect = gettext_lazy("The execution goes on, past a breakpoint if it stands at one.")

    def fits(self, execution: Execution[Any]) -> bool:
        asked = execution.status == "running" and execution.pause_requested_at is not None
        return asked or execution.status in (*SOURCES["resume"], *SOURCES["unblock"])

    def perform(self, execution: Execution[Any], *, actor: Any, reason: str) -> str:
        resume(execution, actor=actor, reason=reason)
        return _("Execution %(id)s goes on.") % {"id": execution.pk}


ACTS: Final[dict[str, Act]] = {act.verb: act for act in (Retry(), Cancel(), Pause(), Resume())}
"""Every verb that the admin offers, in the order of its buttons."""
