"""SpineWork: what a plane's transition wants on the spine, in its own transaction where both are one database.

Where they are not, the plane goes first: the intent is an outbox row in the plane's transaction, and what the
spine is told (an acknowledgement, a withdrawal, the intent's hint) follows after the plane's commit, in one
transaction there. Whatever a kill leaves between the two is found by a sweep: *outbox* for intents, the lease's
end and *dangling* for acknowledgements.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connections, transaction

from django_durable.dispatch import hints
from django_durable.dispatch.hints import Intent
from django_durable.dispatch.nudge import nudge_after_commit
from django_durable.dispatch.outbox import insert_intent, publish_intents
from django_durable.ids import random_id
from django_durable.models import DispatchHint
from django_durable.planes.registry import name_of
from django_durable.planes.selection import spine_alias
from django_durable.sql import Sql, execute

logger = logging.getLogger("django_durable")

Statement = Callable[[], Sql]


class SpineWork:
    """Collect what to tell the spine; ``consequences()`` go into the batch, ``finish()`` follows one that held."""

    def __init__(self, plane: str) -> None:
        self.plane = plane
        self.spine = spine_alias()
        self.joined = plane == self.spine
        self._told: list[Sql] = []
        self._intents: list[tuple[UUID, Intent]] = []
        self._first = False

    # -- what to tell ----------------------------------------------------------------------------------------

    def acknowledge(self, hint_id: UUID, token: UUID) -> SpineWork:
        """The hint's work is done."""
        self._told.append(hints.acknowledge(connections[self.spine], hint_id, token))
        return self

    def put_back(self, hint_id: UUID, token: UUID, due_at: datetime | Sql) -> SpineWork:
        """Give the lease up; the hint is due again at that time."""
        self._told.append(hints.put_back(connections[self.spine], hint_id, token, due_at))
        return self

    def delete_all(self, execution_id: UUID) -> SpineWork:
        """The execution has ended."""
        self._told.append(hints.delete_all(connections[self.spine], execution_id))
        return self

    def revoke(self, execution_id: UUID) -> SpineWork:
        """Whoever holds its lease is to stop; the renewal tells it."""
        self._told.append(hints.revoke(connections[self.spine], execution_id))
        return self

    def withdraw(self, execution_id: UUID, revision: int) -> SpineWork:
        """Unleased hints of earlier revisions no longer count."""
        self._told.append(hints.delete_older(connections[self.spine], execution_id, revision))
        return self

    def withdraw_steps(self, execution_id: UUID, positions: Sequence[int]) -> SpineWork:
        """The steps at these positions are no longer wanted; whoever runs one finds its lease gone."""
        self._told.append(hints.delete_steps(connections[self.spine], execution_id, positions))
        return self

    def publish(self, intent: Intent, *, first: bool = False) -> SpineWork:
        """The next intent. ``first``: the execution is new, so there is no older hint to delete."""
        self._intents.append((random_id(), intent))
        self._first = first
        return self

    # -- when to tell ----------------------------------------------------------------------------------------

    def consequences(self) -> list[Sql]:
        """The statements for the plane's batch."""
        if not self.joined:
            return [insert_intent(connections[self.plane], intent) for _id, intent in self._intents]
        connection, told = connections[self.spine], list(self._told)
        for hint_id, intent in self._intents:
            if intent.kind == DispatchHint.Kind.TURN and not self._first:
                told.append(hints.delete_older(connection, intent.execution_id, intent.revision))
            told.append(hints.insert_hint(connection, intent, hint_id))
        return told

    def run(self) -> None:
        """Execute the consequences one by one, within the plane's open transaction, and finish."""
        for statement in self.consequences():
            execute(self.plane, statement)
        self.finish()

    def finish(self) -> None:
        """After the batch held: nudge, or tell the spine, once the plane's transaction is committed."""
        if self.joined:
            for hint_id, intent in self._intents:
                if intent.due_at is None and intent.state == DispatchHint.State.LIVE:
                    nudge_after_commit(self.plane, hint_id, intent.queue)
            return
        if self._told or self._intents:
            transaction.on_commit(self._tell, using=self.plane, robust=True)

    def _tell(self) -> None:
        try:
            if self._told:
                with transaction.atomic(using=self.spine):
                    for statement in self._told:
                        execute(self.spine, statement)
            for execution_id in {intent.execution_id for _id, intent in self._intents}:
                publish_intents(self.plane, name_of(self.plane), execution_id)
        except (DatabaseError, InterfaceError) as error:
            # The plane has committed: nothing is lost, a sweep tells the spine later.
            logger.warning("the spine could not be told of a change (%s); a sweep will", type(error).__name__)
            connections[self.spine].close_if_unusable_or_obsolete()
