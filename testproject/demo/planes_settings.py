"""The demo with data planes: the shop's tables go with its tenants; ``west`` is a database before it is a plane."""

from testproject.demo.planes import NORTH, SOUTH
from testproject.demo.settings import *  # noqa: F403
from testproject.demo.settings import DURABLE as _DURABLE

DURABLE = {**_DURABLE, "PLANES": {NORTH: NORTH, SOUTH: SOUTH}}
DATABASE_ROUTERS = ["testproject.shop.routers.ShopRouter"]
