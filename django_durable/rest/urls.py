"""The addresses: ``path("durable/", include("django_durable.rest.urls"))``."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from django_durable.rest.approvals import ApprovalViewSet
from django_durable.rest.callbacks import CallbackViewSet
from django_durable.rest.dead_letters import DeadLetterViewSet
from django_durable.rest.document import DocumentViewSet
from django_durable.rest.events import EventViewSet
from django_durable.rest.executions import ExecutionViewSet
from django_durable.rest.hints import HintViewSet
from django_durable.rest.planes import PlaneViewSet
from django_durable.rest.schedules import ScheduleViewSet
from django_durable.rest.stats import StatsViewSet
from django_durable.rest.workflows import WorkflowViewSet

app_name = "django_durable"

router = SimpleRouter()
router.register("executions", ExecutionViewSet, basename="execution")
router.register("dead-letters", DeadLetterViewSet, basename="dead-letter")
router.register("hints", HintViewSet, basename="hint")
router.register("approvals", ApprovalViewSet, basename="approval")
router.register("schedules", ScheduleViewSet, basename="schedule")
router.register("planes", PlaneViewSet, basename="plane")
router.register("events", EventViewSet, basename="event")
router.register("workflows", WorkflowViewSet, basename="workflow")
router.register("stats", StatsViewSet, basename="stats")
router.register("schema", DocumentViewSet, basename="schema")

urlpatterns = [
    *router.urls,
    path("callbacks/<str:token>/", CallbackViewSet.as_view({"post": "create"}), name="callback-detail"),
]
