from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _forget_trips() -> None:
    from tests.composition import trips

    trips.log.clear()
    trips.keys.clear()
    trips.during.clear()
