"""The application: autodiscovery and system checks. Queries nothing and starts no thread."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class DurableConfig(AppConfig):
    """``INSTALLED_APPS = [..., "django_durable"]`` is the only required line."""

    name = "django_durable"
    label = "django_durable"
    verbose_name = _("Durable execution")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import_module("django_durable.checks")
        from django.conf import settings

        from django_durable.conf import read

        config, _problems = read(getattr(settings, "DURABLE", {}))
        if config.autodiscover_module:
            autodiscover_modules(config.autodiscover_module)
