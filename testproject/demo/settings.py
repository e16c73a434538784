"""The test project in a hurry: a dead worker's work is taken over after two seconds, not after thirty."""

from testproject.settings import *  # noqa: F403
from testproject.settings import DURABLE as _DURABLE

DURABLE = {**_DURABLE, "LEASE_SECONDS": 2, "POLL_SECONDS": 0.25, "TICK_SECONDS": 0.5}
