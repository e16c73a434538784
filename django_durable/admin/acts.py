"""Act: an operator's verb as the admin offers it. What it does and whether it may is decided further down.

Those that need nothing but a reason are here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_durable.admin.forms import ReasonForm
from django_durable.engine.transitions import SOURCES
from django_durable.errors import InvalidTransition
from django_durable.models import Execution, OperatorNote
from django_durable.operators.cancel import cancel
from django_durable.operators.pause import pause
from django_durable.operators.resume import resume
from django_durable.operators.retry import retry

__all__ = ["Act", "Cancel", "CancelAtOnce", "Pause", "Resume", "Retry"]


class Act(ABC):
    """One verb: its words, the executions it is offered for, and its call."""

    verb: ClassVar[str]
    """The verb's name in addresses."""
    permission: ClassVar[str]
    """Its name in the table of permissions."""
    form: ClassVar[type[forms.Form]] = ReasonForm
    """What it has to be told; built with the executions that it is about."""
    for_many: ClassVar[bool] = True
    """Whether it is offered for what is ticked in the list."""
    label: ClassVar[Promise]
    effect: ClassVar[Promise]
    """What happens, for whoever is about to confirm it."""

    @abstractmethod
    def fits(self, execution: Execution[Any]) -> bool:
        """Whether it is worth offering, by the row at hand. The engine decides, by the row as it is then."""

    @abstractmethod
    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        """Do it, as the form tells; what came of it. Raises ``InvalidTransition`` where somebody was first."""


class Retry(Act):
    """Reopens what ended in failure."""

    verb = permission = "retry"
    label = gettext_lazy("Retry")
    effect = gettext_lazy(
        "What is recorded is kept and does not run again; what ended the run is removed and runs anew, with fresh"
        " attempts, recoveries and deadline. Of several operators one wins."
    )

    def fits(self, execution: Execution[Any]) -> bool:
        return execution.status in (*SOURCES["reopen"], *SOURCES["unblock"])

    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        retry(execution, actor=actor, reason=told["reason"])
        return _("Execution %(id)s is retried.") % {"id": execution.pk}


class Cancel(Act):
    """Ends an execution from outside."""

    verb = permission = "cancel"
    label = gettext_lazy("Cancel")
    effect = gettext_lazy(
        "The execution ends, after its undo steps where it has registered any. A step that is running may finish; its"
        " result is refused. This cannot be taken back."
    )

    compensate: ClassVar[bool] = True

    def fits(self, execution: Execution[Any]) -> bool:
        return execution.status in SOURCES["cancel"] and not (self.compensate and execution.ending_as)

    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        if not cancel(execution, compensate=self.compensate, actor=actor, reason=told["reason"]):
            raise self._lost(execution)
        if not execution.is_terminal:
            return _("Execution %(id)s is being cancelled: its undo steps run first.") % {"id": execution.pk}
        return _("Execution %(id)s is cancelled.") % {"id": execution.pk}

    def _lost(self, execution: Execution[Any]) -> InvalidTransition:
        notes = OperatorNote.objects.using(execution.using).filter(execution_id=execution.pk, verb="cancel")
        actor = notes.order_by("-at", "-id").values_list("actor", flat=True).first()
        facts = {"id": execution.pk, "status": execution.get_status_display(), "actor": actor}
        if actor and execution.cancel_requested_at is not None:
            text = _("Execution %(id)s is %(status)s; it was cancelled by %(actor)s already.")
        else:
            text = _("Execution %(id)s is %(status)s; there is nothing to cancel.")
        return InvalidTransition(text % facts, actor=actor)


class CancelAtOnce(Cancel):
    """Ends an execution from outside, and leaves what it has done."""

    verb = "cancel-at-once"
    label = gettext_lazy("Cancel without undo")
    effect = gettext_lazy(
        "The execution ends at once, in the middle of its undo steps too: none of them runs any more, and what it has"
        " done stays. This cannot be taken back."
    )
    compensate = False


class Pause(Act):
    """Stops an execution at its next position."""

    verb = permission = "pause"
    label = gettext_lazy("Pause")
    effect = gettext_lazy(
        "The execution stops; a running one first records the result in hand. What arrives meanwhile is kept."
    )

    def fits(self, execution: Execution[Any]) -> bool:
        asked = execution.pause_requested_at is not None or execution.ending_as
        return execution.status in SOURCES["pause"] and not asked

    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        pause(execution, actor=actor, reason=told["reason"])
        if execution.status == "running":
            return _("Execution %(id)s pauses at its next position.") % {"id": execution.pk}
        return _("Execution %(id)s is paused.") % {"id": execution.pk}


class Resume(Act):
    """Lets an execution go on."""

    verb = permission = "resume"
    label = gettext_lazy("Resume")
    effect = gettext_lazy("The execution goes on, past a breakpoint if it stands at one.")

    def fits(self, execution: Execution[Any]) -> bool:
        asked = execution.status == "running" and execution.pause_requested_at is not None
        return asked or execution.status in (*SOURCES["resume"], *SOURCES["unblock"])

    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        resume(execution, actor=actor, reason=told["reason"])
        return _("Execution %(id)s goes on.") % {"id": execution.pk}
