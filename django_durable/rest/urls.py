"""The addresses: ``path("durable/", include("django_durable.rest.urls"))``."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from django_durable.rest.executions import ExecutionViewSet

app_name = "django_durable"

router = SimpleRouter()
router.register("executions", ExecutionViewSet, basename="execution")

urlpatterns = router.urls
