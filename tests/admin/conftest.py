"""Fixtures of this tier. Imported before the settings are chosen, so it imports nothing that reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django.test import Client


@pytest.fixture(autouse=True)
def _steps_fail() -> None:
    from tests.admin import flows

    flows.state["broken"] = True


@pytest.fixture
def superuser(db: None) -> Client:
    """Somebody who may do everything."""
    from tests.admin.visitors import sign_in

    return sign_in("superuser")


@pytest.fixture
def viewer(db: None) -> Client:
    """Somebody who may look, and sees no payload."""
    from tests.admin.visitors import sign_in

    return sign_in("viewer")
