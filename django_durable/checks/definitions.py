"""Steps and workflows that the registry noted as unfit while their modules were imported."""

from __future__ import annotations

import sys
from typing import Any

from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured

from django_durable.conf import config

_IDS = {"duplicate": "durable.E030", "nested": "durable.E031", "signature": "durable.E032"}


def schedule_problems() -> list[CheckMessage]:
    """Schedules that two workflows declare, and those that no plane would take."""
    schedules = sys.modules.get("django_durable.authoring.schedule")
    if schedules is None:
        return []
    twice = [
        Error(
            f"schedule {mine.name!r} is declared by {first.workflow.name!r} and by {mine.workflow.name!r}",
            hint="Rename one of them: a schedule is known by its name.",
            id="durable.E033",
        )
        for first, mine in schedules.schedule_conflicts()
    ]
    homeless = [
        Error(
            f"schedule {one.name!r} of {one.workflow.name!r} has no tenant, and UNTENANTED is 'refuse'",
            hint="Give it tenant=…, or set DURABLE['UNTENANTED'] to 'control-plane'.",
            id="durable.E034",
        )
        for one in schedules.declared_schedules().values()
        if not one.tenant and untenanted_refused()
    ]
    return [*twice, *homeless]


def untenanted_refused() -> bool:
    """As the settings say; broken ones are told by other checks."""
    try:
        return config().untenanted == "refuse"
    except ImproperlyConfigured:
        return False


def check_definitions(app_configs: object, **kwargs: Any) -> list[CheckMessage]:
    """One message for each problem of a definition, in the registry's own words."""
    registry = sys.modules.get("django_durable.authoring.registry")
    found = registry.problems() if registry is not None else ()
    problems = [Error(message, hint=hint, id=_IDS[kind]) for kind, message, hint in found]
    return [*problems, *schedule_problems()]
