"""Context: the first parameter of a workflow. What is not behind ``ctx.`` runs again at every turn."""

from __future__ import annotations

from django_durable.authoring.operations.approvals import Approvals
from django_durable.authoring.operations.callbacks import Callbacks
from django_durable.authoring.operations.chains import Chains
from django_durable.authoring.operations.composition import Composition
from django_durable.authoring.operations.events import Events
from django_durable.authoring.operations.fan_out import FanOut
from django_durable.authoring.operations.first import First
from django_durable.authoring.operations.known import Known
from django_durable.authoring.operations.messages import Messages
from django_durable.authoring.operations.publishing import Publishing
from django_durable.authoring.operations.spending import Spending
from django_durable.authoring.operations.steps import Steps
from django_durable.authoring.operations.timers import Timers
from django_durable.authoring.operations.undo import Undo
from django_durable.authoring.operations.versions import Versions


class Context(
    Known,
    Steps,
    Composition,
    FanOut,
    Timers,
    Messages,
    First,
    Events,
    Callbacks,
    Approvals,
    Publishing,
    Undo,
    Versions,
    Spending,
    Chains,
):
    """One turn's context. Made by the engine; valid in its own thread and for its own turn only."""
