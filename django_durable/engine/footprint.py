"""Footprint: how far a run's history has come, so that what was decided by reading it can be checked under a lock."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django_durable.models import Checkpoint
from django_durable.models.checkpoint import WHOLE


class HistoryMovedOn(Exception):
    """The history is no longer the one that was read: read it again."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One checkpoint, without its values."""

    position: int
    item: int
    kind: str
    name: str
    status: str

    @property
    def is_settled(self) -> bool:
        """Whether nothing can change it any more. The items of a map are settled with the whole of it."""
        return self.item != WHOLE or self.status in ("completed", "failed")


def footprint(using: str, execution_id: UUID) -> list[Mark]:
    """Every checkpoint in order."""
    rows = Checkpoint.objects.using(using).filter(execution_id=execution_id).order_by("position", "item")
    return [Mark(*row) for row in rows.values_list("position", "item", "kind", "name", "status")]
