"""Forms: what a verb has to be told besides why."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_durable.models import ApprovalRequest, Execution

__all__ = ["ApprovalForm", "ForkForm", "MessageForm", "ReasonForm"]

NAME_LENGTH: Final = 255
AREA: Final[Mapping[str, Any]] = {"rows": 3, "cols": 60, "class": "vLargeTextField"}


class ReasonForm(forms.Form):
    """Why: kept with who and when. ``executions``: those that it is about, if it is about any."""

    def __init__(self, data: Any = None, *, executions: Sequence[Execution[Any]] = ()) -> None:
        super().__init__(data)
        # Last, whatever a verb asks before it.
        self.order_fields([name for name in self.fields if name != "reason"])

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept with your name in the execution's notes."),
        max_length=2000,
        required=False,
        widget=forms.Textarea(attrs=dict(AREA)),
    )


class JSONText(forms.CharField):
    """A JSON document; empty for null. The numbers in it stay exact."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, widget=forms.Textarea(attrs=dict(AREA)), **options)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValidationError(_("It is not JSON: %s") % error) from error


class MessageForm(forms.Form):
    """A name and what is sent under it. It leaves no note, so it asks for no reason."""

    def __init__(self, data: Any = None, *, executions: Sequence[Execution[Any]]) -> None:
        super().__init__(data)

    name = forms.CharField(label=gettext_lazy("Name"), max_length=NAME_LENGTH)
    payload = JSONText(
        label=gettext_lazy("Payload"),
        help_text=gettext_lazy("JSON; empty for null. It arrives as it is written here."),
    )


class ForkForm(ReasonForm):
    """Where to cut."""

    from_position = forms.IntegerField(
        label=gettext_lazy("From position"),
        min_value=0,
        help_text=gettext_lazy("The first position to do again; what is before it is copied."),
    )
    version = forms.CharField(
        label=gettext_lazy("Version"),
        max_length=64,
        required=False,
        help_text=gettext_lazy("Empty: the same. Another one has to replay what is copied."),
    )


class ApprovalForm(ReasonForm):
    """Which of the approvals that are asked for, and the answer."""

    name = forms.ChoiceField(label=gettext_lazy("Approval"))
    approved = forms.ChoiceField(
        label=gettext_lazy("Decision"),
        choices=[("yes", gettext_lazy("Approve")), ("no", gettext_lazy("Reject"))],
        widget=forms.RadioSelect,
    )
    answer = JSONText(label=gettext_lazy("Data"), help_text=gettext_lazy("JSON for the workflow; empty for null."))

    def __init__(self, data: Any = None, *, executions: Sequence[Execution[Any]]) -> None:
        super().__init__(data, executions=executions)
        self.fields["name"].choices = [  # type: ignore[attr-defined]
            (asked.name, f"{asked.name}: {asked.prompt}" if asked.prompt else asked.name)
            for execution in executions
            for asked in ApprovalRequest.objects.using(execution.using).open().filter(execution_id=execution.pk)
        ]
