"""Arrived: what ``ctx.wait_any`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django_durable.authoring.update import Update


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """``source`` is the object that was passed in, ``value`` what came from it; an ``update`` can be answered."""

    source: Any
    value: Any
    update: Update | None = None
