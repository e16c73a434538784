"""OutcomeSource: the end of something that runs elsewhere, as one of the sources of a wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django_durable.engine.claimed import Claimed, as_utc
from django_durable.engine.messages import Letter
from django_durable.engine.transitions.await_results import adopt_ended_children, read_records
from django_durable.engine.transitions.fan_in import at
from django_durable.models import Checkpoint
from django_durable.models.checkpoint import WHOLE
from django_durable.sql import Sql


@dataclass(frozen=True, slots=True)
class OutcomeSource:
    """What was begun at a position; its checkpoint is the mark, so nothing is registered and nothing consumed."""

    position: int
    number: int

    @property
    def channel(self) -> str:
        """Its end wakes by the position."""
        return at(self.position)

    def register(self, claim: Claimed, position: int) -> None:
        """Nothing: whoever ends it locks the row of the execution that waits."""

    def oldest(self, claim: Claimed, before: datetime | None) -> Letter | None:
        """A notice that it has ended, in time."""
        adopt_ended_children(claim, read_records(claim, [self.position]))
        ended = Checkpoint.objects.using(claim.using).filter(
            execution_id=claim.id, position=self.position, item=WHOLE
        )
        finished_at = ended.exclude(status="pending").values_list("finished_at", flat=True).first()
        if finished_at is None or (before is not None and as_utc(finished_at) > before):
            return None
        return Letter(0, self.channel, "null", as_utc(finished_at), number=self.number)

    def consume(self, claim: Claimed, position: int, letter: Letter) -> None:
        """Nothing: a result can be had as often as somebody asks."""

    def close(self, claim: Claimed, position: int) -> Sql:
        """Nothing was registered."""
        return Sql("SELECT 1")
