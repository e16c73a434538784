"""Every scenario of the sweep."""

from __future__ import annotations

from tests.crash.scenario import Scenario
from tests.crash.scenarios_acted_on import ACTED_ON
from tests.crash.scenarios_alone import ALONE
from tests.crash.scenarios_elsewhere import ELSEWHERE
from tests.crash.scenarios_flow import FLOW
from tests.crash.scenarios_messages import MESSAGES
from tests.crash.scenarios_on_planes import ON_PLANES
from tests.crash.scenarios_scheduled import SCHEDULED
from tests.crash.scenarios_undone import UNDONE
from tests.crash.scenarios_versions import VERSIONS

__all__ = ["COMPOSED", "SCENARIOS", "scenario"]

COMPOSED = [*UNDONE, *MESSAGES, *VERSIONS, *ELSEWHERE, *SCHEDULED]
"""Those of composition."""
COMPOSED = [*UNDONE, *MESSAGES, *VERSIONS, *ELSEWHERE, *FLOW]
"""Those of composition, and of flow."""

SCENARIOS = [*ALONE, *ACTED_ON, *COMPOSED]
"""Those that need one database."""


def scenario(name: str) -> Scenario:
    """The scenario of this name."""
    return next(one for one in (*SCENARIOS, *ON_PLANES) if one.name == name)
