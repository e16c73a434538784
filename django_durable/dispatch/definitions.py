"""The keyed short hash under which the spine knows a workflow and version.

The spine holds no names. The hash is keyed with the project's secret so that a reader of the spine cannot
guess names; after a rotation of ``SECRET_KEY`` the fallbacks keep old hints claimable, and a hint whose hash
nobody knows is looked up on its plane before it is called unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.utils.crypto import salted_hmac

LENGTH = 16
_SALT = "django_durable.definition"
_cache: dict[tuple[str, str, str], str] = {}


def definition_hash(workflow: str, version: str) -> str:
    """Sixteen hex digits for a workflow's name and version."""
    return _hash(str(settings.SECRET_KEY), workflow, version)


def tenant_hash(tenant: str) -> str:
    """Sixteen hex digits for a tenant: whom the spine lets take turns, without knowing who that is."""
    return _hash(str(settings.SECRET_KEY), "", tenant)


def known_hashes(definitions: Iterable[tuple[str, str]]) -> list[str]:
    """The hashes of these definitions under the current secret and every fallback, sorted."""
    secrets = [str(settings.SECRET_KEY), *(str(key) for key in settings.SECRET_KEY_FALLBACKS)]
    return sorted({_hash(secret, name, version) for name, version in definitions for secret in secrets})


def _hash(secret: str, workflow: str, version: str) -> str:
    cached = _cache.get((secret, workflow, version))
    if cached is None:
        digest = salted_hmac(_SALT, f"{workflow}\x00{version}", secret=secret, algorithm="sha256").hexdigest()
        cached = _cache[(secret, workflow, version)] = digest[:LENGTH]
    return cached
