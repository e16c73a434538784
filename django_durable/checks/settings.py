"""``settings.DURABLE``: every fault that reading finds, and what shows only once the project is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.checks import CheckMessage, Error, Warning
from django.db import connections
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from django_durable.conf import Config, read_settings
from django_durable.showing import shown

_IDS = {
    "shape": "durable.E001",
    "unknown": "durable.E002",
    "type": "durable.E003",
    "value": "durable.E004",
    "combination": "durable.E005",
}
_PATH_KEYS = (
    "TENANT_RESOLVER",
    "CODECS",
    "REST_PERMISSION_CLASSES",
    "REST_AUTHENTICATION_CLASSES",
    "REST_THROTTLE_CLASSES",
)


_REST_METHODS = {
    "REST_PERMISSION_CLASSES": "has_permission",
    "REST_AUTHENTICATION_CLASSES": "authenticate",
    "REST_THROTTLE_CLASSES": "allow_request",
}


def check_settings(app_configs: object, **kwargs: Any) -> list[CheckMessage]:
    """Every fault of ``settings.DURABLE``, one message each."""
    config, problems = read_settings()
    return [
        *(Error(each.message(_), hint=each.hint(_), id=_IDS[each.fault]) for each in problems),
        *_unknown_aliases(config),
        *_broken_paths(config),
        *_wrong_rest_classes(config),
        *_broken_retry(config.default_retry),
        *_doubtful_values(config),
    ]


def _unknown_aliases(config: Config) -> Iterator[CheckMessage]:
    named = {"SPINE": config.spine, **{f"PLANES[{plane!r}]": alias for plane, alias in config.planes.items()}}
    for where, alias in named.items():
        if alias not in connections:
            yield Error(
                _("DURABLE: %(where)s is %(alias)r, which is not an alias in DATABASES.")
                % {"where": where, "alias": alias},
                hint=_("The aliases are %(aliases)s.") % {"aliases": ", ".join(connections)},
                id="durable.E006",
            )


def _broken_paths(config: Config) -> Iterator[CheckMessage]:
    """Dotted paths that lead nowhere; reading the settings looked at their form only."""
    for key in _PATH_KEYS:
        value = getattr(config, key.lower())
        for path in (value,) if isinstance(value, str) else value or ():
            if isinstance(path, type):
                continue
            # What a codec is, the payloads decide; the others are called or instantiated.
            why = _why_unusable(path, must_be_callable=key != "CODECS")
            if why is not None:
                yield Error(
                    _("DURABLE['%(key)s'] names %(path)r, which cannot be used: %(why)s.")
                    % {"key": key, "path": path, "why": why},
                    hint=_("Give the dotted path of something that can be imported and, codecs apart, called."),
                    id="durable.E007",
                )


def _why_unusable(path: str, *, must_be_callable: bool) -> str | None:
    try:
        found = import_string(path)
    except Exception as error:  # the project's module runs here, and may fail in any way
        return f"{type(error).__name__}: {error}"
    return None if callable(found) or not must_be_callable else _("it is not callable")


def _wrong_rest_classes(config: Config) -> Iterator[CheckMessage]:
    """Classes that can be imported and are of another kind: a throttle among the permissions."""
    for key, method in _REST_METHODS.items():
        for named in getattr(config, key.lower()) or ():
            if isinstance(named, str) and _why_unusable(named, must_be_callable=True) is not None:
                continue  # told already
            found = import_string(named) if isinstance(named, str) else named
            if not callable(getattr(found, method, None)):
                yield Error(
                    _("DURABLE['%(key)s'] names %(class)s, which has no method %(method)s().")
                    % {"key": key, "class": shown(named), "method": method},
                    hint=_("Give classes of Django REST framework's kind, or leave the key out."),
                    id="durable.E009",
                )


def _broken_retry(value: object | None) -> Iterator[CheckMessage]:
    module = sys.modules.get("django_durable.authoring.retry")
    if module is None or value is None or isinstance(value, module.Retry):
        return
    try:
        if not isinstance(value, Mapping):
            raise TypeError(_("it is a %(type)s") % {"type": type(value).__name__})
        module.Retry(**value)
    except (TypeError, ValueError) as error:
        yield Error(
            _("DURABLE['DEFAULT_RETRY'] makes no Retry: %(error)s") % {"error": error},
            hint=_("Give a Retry, or a dict of its options, such as {'max_attempts': 3}."),
            id="durable.E008",
        )


def _doubtful_values(config: Config) -> Iterator[CheckMessage]:
    if config.lease_seconds < 1:
        yield Warning(
            _("DURABLE['LEASE_SECONDS'] is %(seconds)s: a short pause of a worker loses its claim.")
            % {"seconds": config.lease_seconds},
            hint=_("Use 10 seconds or more outside tests: a step whose claim is lost is repeated elsewhere."),
            id="durable.W001",
        )
    if config.rest_permission_classes == ():
        yield Warning(
            _("DURABLE['REST_PERMISSION_CLASSES'] is empty: the REST API is open to everybody."),
            hint=_("Leave the key out for a check of the model permissions, or name your own classes."),
            id="durable.W002",
        )
    if config.rest_throttle_classes == ():
        yield Warning(
            _("DURABLE['REST_THROTTLE_CLASSES'] is empty: anybody may guess callback tokens as fast as they can."),
            hint=_("Leave the key out for limits by scope, or name your own classes."),
            id="durable.W004",
        )
    for alias in sorted(set(config.planes.values())):
        planes = sorted(plane for plane in config.planes if config.planes[plane] == alias)
        if len(planes) > 1:
            yield Warning(
                _("DURABLE['PLANES']: %(planes)s share the database %(alias)r.")
                % {"planes": ", ".join(map(repr, planes)), "alias": alias},
                hint=_("Tenants on them are not kept apart; give each plane a database of its own."),
                id="durable.W003",
            )
