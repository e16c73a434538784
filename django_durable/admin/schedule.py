"""ScheduleAdmin: what is started when, what became of each time; pause, resume and trigger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_durable.admin.columns import moment
from django_durable.admin.filters import WorkflowFilter
from django_durable.admin.forms import ReasonForm
from django_durable.admin.read_only import ReadOnlyAdmin
from django_durable.admin.schedule_page import fires_of, schedule_facts, state_of, when
from django_durable.admin.scope import scope_of
from django_durable.errors import DurableError
from django_durable.models import Schedule
from django_durable.operators.permissions import may

__all__ = ["ScheduleAdmin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAct:
    """One verb: its words, the schedules it is offered for, and its call."""

    label: Promise
    effect: Promise
    fits: Callable[[Schedule], bool]
    perform: Callable[..., Any]


SCHEDULE_ACTS: Final = {
    "trigger": ScheduleAct(
        label=gettext_lazy("Trigger now"),
        effect=gettext_lazy("Its workflow is started now, whatever of it runs, and also while it is paused."),
        fits=lambda schedule: True,
        perform=Schedule.trigger,
    ),
    "pause": ScheduleAct(
        label=gettext_lazy("Pause"),
        effect=gettext_lazy("Its times pass and are recorded as skipped until it is resumed. What runs goes on."),
        fits=lambda schedule: not schedule.is_paused,
        perform=Schedule.pause,
    ),
    "resume": ScheduleAct(
        label=gettext_lazy("Resume"),
        effect=gettext_lazy("Its times fire again from now on. Those that passed meanwhile stay skipped."),
        fits=lambda schedule: schedule.is_paused,
        perform=Schedule.resume,
    ),
}


class ScheduleAdmin(ReadOnlyAdmin[Schedule]):
    """The newest first. Every change goes through the verbs, which code and command line call too."""

    columns = tuple(field.name for field in Schedule._meta.concrete_fields if field.name != "encoded_input")
    lookups = ("workflow",)
    list_display = (
        "name",
        "tenant",
        "workflow",
        "shown_when",
        "shown_state",
        "shown_next_at",
        "shown_last_at",
        "last_outcome",
    )
    list_display_links = ("name",)
    list_filter = (WorkflowFilter,)

    @admin.display(description=gettext_lazy("when"))
    def shown_when(self, schedule: Schedule) -> str:
        """Its expression and zone, or its interval."""
        return when(schedule)

    @admin.display(description=gettext_lazy("state"))
    def shown_state(self, schedule: Schedule) -> str:
        """Active, paused, or no longer declared."""
        return state_of(schedule)

    @admin.display(description=gettext_lazy("next time"))
    def shown_next_at(self, schedule: Schedule) -> str | None:
        """The first time that is not decided."""
        return moment(schedule.next_at)

    @admin.display(description=gettext_lazy("last time"))
    def shown_last_at(self, schedule: Schedule) -> str | None:
        """The last time that was decided."""
        return moment(schedule.last_at)

    # -- one schedule ------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """The list, a page a schedule, and a page a verb."""
        verbs = [
            path(
                f"<path:object_id>/{verb}/",
                self.guarded(partial(self.verb_view, verb=verb)),
                name=self.url_name(verb),
            )
            for verb in SCHEDULE_ACTS
        ]
        return [*super().get_urls(), *verbs]

    def find(self, request: HttpRequest, object_id: str) -> Schedule:
        """The schedule, within the request's scope. Raises ``Http404``."""
        try:
            found = self.get_queryset(request).filter(pk=UUID(object_id)).first()
        except ValueError:
            found = None
        if found is None:
            raise Http404(f"there is no schedule {object_id}")
        return found

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of one schedule. It has no form: whatever is sent to it is shown the page."""
        self.check_may_view(request)
        schedule = self.find(request, object_id)
        offered = [
            {"act": act, "url": self.url(verb, schedule.pk)}
            for verb, act in SCHEDULE_ACTS.items()
            if may(request.user, "schedule") and act.fits(schedule)
        ]
        page = {
            "facts": schedule_facts(schedule),
            "table": fires_of(schedule, self.admin_site.name),
            "verbs": offered,
            **(extra_context or {}),
        }
        return self.page(request, schedule, "schedule.html", str(schedule), page)

    def verb_view(self, request: HttpRequest, object_id: str, *, verb: str) -> HttpResponse:
        """GET asks, POST does it; both only for those who may."""
        self.check_may_view(request)
        if not may(request.user, "schedule"):
            raise PermissionDenied
        schedule, act = self.find(request, object_id), SCHEDULE_ACTS[verb]
        back = self.url("change", schedule.pk)
        form = ReasonForm(request.POST if request.method == "POST" else None)
        if not form.is_valid():
            title = _("%(verb)s: %(execution)s") % {"verb": act.label, "execution": schedule}
            return self.page(request, schedule, "schedule_verb.html", title, {"act": act, "form": form, "back": back})
        try:
            act.perform(schedule, actor=request.user, reason=form.cleaned_data["reason"])
        except (DurableError, ValueError) as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            self.message_user(request, _("Done: %(verb)s.") % {"verb": act.label}, messages.SUCCESS)
        return HttpResponseRedirect(back)

    def page(
        self, request: HttpRequest, schedule: Schedule, template: str, title: str, more: dict[str, Any]
    ) -> HttpResponse:
        """A page in the admin's frame."""
        scope_of(request)
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media["css"],
            "has_view_permission": True,
            "title": title,
            "original": schedule,
            **more,
        }
        return TemplateResponse(request, f"admin/django_durable/{template}", context)
