"""Confirmation: the page between asking for a verb and doing it, and the telling of what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_durable.admin.acts import Act
from django_durable.admin.columns import status_badge
from django_durable.errors import DurableError
from django_durable.models import Execution

if TYPE_CHECKING:
    from django_durable.admin.read_only import ReadOnlyAdmin

__all__ = ["CONFIRMED", "Confirmation"]

CONFIRMED: Final = "confirmed"
"""The parameter that tells the second request of a list's action from the first."""
TOLD: Final = 10
"""Messages of one kind; of more only their number is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """One verb for some executions, asked for by one request."""

    admin: ReadOnlyAdmin[Any]
    act: Act
    executions: Sequence[Execution[Any]]
    back: str
    """Where "no" leads to."""
    from_list: bool = False

    def form(self, data: Any = None) -> forms.Form:
        """What the verb has to be told: empty, or as it was sent."""
        return self.act.form(data, executions=list(self.executions))  # type: ignore[call-arg]

    def ask(self, request: HttpRequest, form: forms.Form) -> HttpResponse:
        """The page: what will change, and why it should. Changes nothing."""
        title = self._title()
        targets = [
            {"execution": one, "badge": status_badge(one.status), "fits": self.act.fits(one)}
            for one in self.executions
        ]
        request.current_app = self.admin.admin_site.name
        context = {
            **self.admin.admin_site.each_context(request),
            "opts": self.admin.opts,
            "media": self.admin.media["css"],
            "has_view_permission": True,
            "title": title,
            "original": title,
            "act": self.act,
            "targets": targets,
            "form": form,
            "back": self.back,
            "hidden": self._hidden(),
        }
        return TemplateResponse(request, "admin/django_durable/confirmation.html", context)

    def carry_out(self, request: HttpRequest, told: Mapping[str, Any]) -> None:
        """Do it to each of them by itself, and leave a message for every outcome, also if an outage ends it early."""
        won: list[str] = []
        lost: list[str] = []
        try:
            for execution in self.executions:
                try:
                    won.append(self.act.perform(execution, request.user, told))
                except (DurableError, TypeError, ValueError) as error:
                    lost.append(str(error))
        finally:
            self._tell(request, messages.SUCCESS, won)
            self._tell(request, messages.ERROR, lost)

    def _tell(self, request: HttpRequest, level: int, texts: list[str]) -> None:
        for text in texts[:TOLD]:
            self.admin.message_user(request, text, level)
        more = len(texts) - TOLD
        if more > 0:
            text = ngettext("And %d more like this.", "And %d more like these.", more) % more
            self.admin.message_user(request, text, level)

    def _title(self) -> str:
        if len(self.executions) == 1:
            return _("%(verb)s: %(execution)s") % {"verb": self.act.label, "execution": self.executions[0]}
        count = len(self.executions)
        return ngettext("%(verb)s %(count)d execution", "%(verb)s %(count)d executions", count) % {
            "verb": self.act.label,
            "count": count,
        }

    def _hidden(self) -> list[tuple[str, str]]:
        """What makes the second request of a list's action the same as the first."""
        if not self.from_list:
            return []
        chosen = [(ACTION_CHECKBOX_NAME, str(one.pk)) for one in self.executions]
        return [("action", f"{self.act.verb}_selected"), (CONFIRMED, "yes"), *chosen]
