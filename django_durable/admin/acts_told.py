"""The verbs that have to be told more than why: messages, decisions, forks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_durable.admin.acts import Act
from django_durable.admin.forms import ApprovalForm, ForkForm, MessageForm
from django_durable.errors import InvalidTransition
from django_durable.models import ApprovalRequest, Execution, Status
from django_durable.models.execution import ACTIVE
from django_durable.operators.decide import decide
from django_durable.operators.fork import fork
from django_durable.operators.signal import send_signal
from django_durable.operators.update import send_update

__all__ = ["Decide", "Fork", "Rerun", "Signal", "Update"]


def takes_messages(execution: Execution[Any]) -> bool:
    """Whether it is worth offering to send it something."""
    return execution.status in ACTIVE and execution.status != "compensating" and not execution.ending_as


class Signal(Act):
    """Sends a signal."""

    verb = permission = "signal"
    label = gettext_lazy("Signal")
    effect = gettext_lazy(
        "The signal is stored, and taken by the next wait for its name, also by one that comes later."
    )
    form = MessageForm
    for_many = False

    def fits(self, execution: Execution[Any]) -> bool:
        return takes_messages(execution)

    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        send_signal(execution, told["name"], told["payload"], dedup_key=None)
        return _("Signal %(name)s is sent to execution %(id)s.") % {"name": told["name"], "id": execution.pk}


class Update(Act):
    """Sends an update."""

    verb = permission = "update"
    label = gettext_lazy("Update")
    effect = gettext_lazy("The update is checked by the workflow's validator and stored, or refused without a trace.")
    form = MessageForm
    for_many = False

    def fits(self, execution: Execution[Any]) -> bool:
        return takes_messages(execution)

    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        try:
            send_update(execution, told["name"], told["payload"])
        except ValidationError as error:  # the workflow's own validator
            raise InvalidTransition(" ".join(error.messages)) from error
        return _("Update %(name)s is sent to execution %(id)s.") % {"name": told["name"], "id": execution.pk}


class Decide(Act):
    """Answers an approval."""

    verb = permission = "decide"
    label = gettext_lazy("Decide")
    effect = gettext_lazy(
        "The approval is decided once, with your name and reason; the execution goes on with the answer."
    )
    form = ApprovalForm
    for_many = False

    def fits(self, execution: Execution[Any]) -> bool:
        if not takes_messages(execution):
            return False
        return ApprovalRequest.objects.using(execution.using).open().filter(execution_id=execution.pk).exists()

    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        name, approved = told["name"], told["approved"] == "yes"
        act = {"approved": approved, "actor": actor, "reason": told["reason"], "data": told["answer"]}
        facts = {"name": name, "id": execution.pk}
        try:
            won = decide(execution, name, **act)
        except PermissionDenied as error:  # of this request alone
            raise InvalidTransition(str(error)) from error
        if not won:
            raise InvalidTransition(_("Approval %(name)s of %(id)s is decided already, or was late.") % facts)
        if approved:
            return _("Approval %(name)s of execution %(id)s is granted.") % facts
        return _("Approval %(name)s of execution %(id)s is rejected.") % facts


class Fork(Act):
    """Tries the rest again."""

    verb = permission = "fork"
    label = gettext_lazy("Fork")
    effect = gettext_lazy(
        "A new execution starts with a copy of the history before a position and does the rest again, its effects"
        " included. This one stays as it is."
    )
    form = ForkForm
    for_many = False

    def fits(self, execution: Execution[Any]) -> bool:
        return execution.status in Status.values

    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        forked = fork(
            execution,
            from_position=told["from_position"],
            actor=actor,
            reason=told["reason"],
            version=told["version"] or None,
        )
        facts = {"id": forked.pk, "position": told["from_position"], "source": execution.pk}
        return _("Execution %(id)s goes on from position %(position)d of %(source)s.") % facts


class Rerun(Act):
    """Does all of it again, in an execution of its own."""

    verb = "rerun"
    permission = "fork"
    label = gettext_lazy("Run again as new")
    effect = gettext_lazy(
        "A new execution without key starts with the same input and does everything again, its effects included. This"
        " one stays as it is."
    )

    def fits(self, execution: Execution[Any]) -> bool:
        return execution.is_terminal

    def perform(self, execution: Execution[Any], actor: Any, told: Mapping[str, Any]) -> str:
        forked = fork(execution, from_position=0, actor=actor, reason=told["reason"], version=None)
        return _("Execution %(id)s runs %(source)s again.") % {"id": forked.pk, "source": execution.pk}
