"""Find an execution by its id."""

from __future__ import annotations

import uuid
from typing import Any

from django_durable.errors import ExecutionNotFound
from django_durable.models import Execution
from django_durable.planes.selection import spine_alias


def locate(id: uuid.UUID | str) -> Execution[Any]:
    """The execution with this id. Raises ``ExecutionNotFound``, also for text that is no UUID."""
    try:
        wanted = id if isinstance(id, uuid.UUID) else uuid.UUID(str(id))
    except ValueError:
        raise ExecutionNotFound(f"{str(id)[:64]!r} is not an execution id (a UUID)") from None
    found: Execution[Any] | None = Execution._base_manager.using(spine_alias()).filter(pk=wanted).first()
    if found is None:
        raise ExecutionNotFound(f"there is no execution {wanted}")
    return found
