"""Where an intent goes in its transition's transaction: straight to the spine, or to the plane's outbox."""

from __future__ import annotations

from uuid import UUID

from django.db import connections

from django_durable.dispatch.hints import Intent, delete_older, insert_hint
from django_durable.dispatch.nudge import nudge_after_commit
from django_durable.ids import random_id
from django_durable.sql import Sql


class Publication:
    """One intent on its way: the batch's consequences, and the nudge to send once they are committed."""

    def __init__(self, using: str, intent: Intent) -> None:
        self.using = using
        self.intent = intent
        self.hint_id: UUID = random_id()

    def consequences(self, *, first: bool = False) -> list[Sql]:
        """The statements that publish it, for the batch that commits the transition.

        ``first``: the execution is new, so there is no older hint to delete.
        """
        connection = connections[self.using]
        insert = insert_hint(connection, self.intent, self.hint_id)
        if first:
            return [insert]
        return [delete_older(connection, self.intent.execution_id, self.intent.revision), insert]

    def announce(self) -> None:
        """After the batch: nudge once it is committed, if the work is due now."""
        if self.intent.due_at is None and self.intent.state == 0:
            nudge_after_commit(self.using, self.hint_id, self.intent.queue)
