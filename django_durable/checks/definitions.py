"""Steps and workflows that the registry noted as unfit while their modules were imported."""

from __future__ import annotations

import sys
from typing import Any

from django.core.checks import CheckMessage, Error

_IDS = {"duplicate": "durable.E030", "nested": "durable.E031", "signature": "durable.E032"}


def schedule_problems() -> list[CheckMessage]:
    """Schedules that a second workflow declares: the first one has them."""
    schedules = sys.modules.get("django_durable.authoring.schedule")
    return [
        Error(
            f"schedule {mine.name!r} is declared by {first.workflow.name!r} and by {mine.workflow.name!r}",
            hint="Rename one of them: a schedule is known by its name.",
            id=_IDS["duplicate"],
        )
        for first, mine in (schedules.schedule_conflicts() if schedules is not None else ())
    ]


def check_definitions(app_configs: object, **kwargs: Any) -> list[CheckMessage]:
    """One message for each problem of a definition, in the registry's own words."""
    registry = sys.modules.get("django_durable.authoring.registry")
    found = registry.problems() if registry is not None else ()
    problems = [Error(message, hint=hint, id=_IDS[kind]) for kind, message, hint in found]
    return [*problems, *schedule_problems()]
