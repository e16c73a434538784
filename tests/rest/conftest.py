"""Fixtures of this tier. Imported before the settings are chosen, so it imports nothing that reads them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _from_the_start() -> None:
    """Steps fail until a test mends them; nobody has asked anything yet."""
    from django.core.cache import cache

    from tests.rest import flows

    flows.state["broken"] = True
    cache.clear()
