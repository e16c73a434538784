"""Acts of those who look after planes: epochs, moves, and what was stranded in an outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_durable.models import DispatchHint, Outbox, TenantPlacement
from django_durable.planes import bump_epoch, move_tenant
from django_durable.runtime.sweeps import relay_outbox
from tests.crash.acts import Act
from tests.crash.between import epoch_of
from tests.crash.places import here, rows

if TYPE_CHECKING:
    from tests.crash.run import Run

__all__ = ["bump", "move", "relay", "strand"]


def bump() -> Act:
    """Raise the tenant's epoch; done again only if it was not."""
    return Act("operator", lambda run: bump_epoch(str(here.tenant)), lambda run: epoch_of(here.tenant) > 0)


def move(plane: str) -> Act:
    """Move the tenant; an operator whose move broke off calls the same again."""

    def done(run: Run) -> bool:
        found = rows(TenantPlacement).filter(pk=here.tenant).values_list("plane", "moving_to", "moved_from")
        arrived = list(found) == [(plane, "", "")]
        if arrived:
            here.live_on(plane)
        return arrived

    return Act("mover", lambda run: move_tenant(str(here.tenant), plane, actor="ann"), done)


def relay() -> Act:
    """The sweep that publishes what was stranded in the plane's outbox."""
    return Act("sweeper", lambda run: relay_outbox(here.plane), lambda run: not rows(Outbox).exists())


def strand() -> None:
    """As if every publication had been cut short: what was published is an intent in the plane's outbox again."""
    for hint in rows(DispatchHint):
        same = ("execution_id", "kind", "position", "item", "revision", "epoch", "queue", "priority", "definition")
        values = {name: getattr(hint, name) for name in (*same, "state", "avoid", "due_at")}
        rows(Outbox).create(**values, created_at=hint.due_at)
    rows(DispatchHint).delete()
