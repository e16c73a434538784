"""The test project for documentation pages: a page may define ``shop.fulfil``, so ours is not imported."""

from testproject.settings import *  # noqa: F403
from testproject.settings import DURABLE as _DURABLE

DURABLE = {**_DURABLE, "AUTODISCOVER_MODULE": None}
