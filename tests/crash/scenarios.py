"""Every scenario of the sweep."""

from __future__ import annotations

from tests.crash.scenario import Scenario
from tests.crash.scenarios_acted_on import ACTED_ON
from tests.crash.scenarios_alone import ALONE
from tests.crash.scenarios_versions import VERSIONS

__all__ = ["SCENARIOS", "scenario"]

SCENARIOS = [*ALONE, *ACTED_ON, *VERSIONS]


def scenario(name: str) -> Scenario:
    """The scenario of this name."""
    return next(one for one in SCENARIOS if one.name == name)
