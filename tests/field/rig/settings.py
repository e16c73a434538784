"""The settings of the process tier, with this folder's workflows; a pod's name and identity from the environment."""

from __future__ import annotations

import os
import socket

from django_durable import ids
from tests.processes.settings import *  # noqa: F403
from tests.processes.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.field.rig"]
if "POD" in os.environ:
    # A pod that is started again has the host name and the process number of the one before it.
    socket.gethostname = lambda: os.environ["POD"]
    os.getpid = lambda: 1
if identity := os.environ.get("IDENTITY"):
    ids._identity = (os.getpid(), identity)
