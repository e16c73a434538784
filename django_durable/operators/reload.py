"""After a verb the instance in hand shows the row as it is now."""

from __future__ import annotations

from typing import Any

from django_durable.engine.reach import reaching
from django_durable.models import Execution
from django_durable.planes.location import locate


def read_again(execution: Execution[Any]) -> Execution[Any]:
    """The row as it is now, also where a move has taken it to another plane in the meantime.

    Raises ``ExecutionNotFound``, ``PlaneUnavailable``.
    """
    with reaching(execution.using):
        fresh: Execution[Any] | None = Execution._base_manager.using(execution.using).filter(pk=execution.pk).first()
    return locate(execution.pk) if fresh is None else fresh


def reload(execution: Execution[Any]) -> Execution[Any]:
    """Read every column of the instance again. Raises as ``read_again``."""
    fresh = read_again(execution)
    for field in Execution._meta.concrete_fields:
        setattr(execution, field.attname, getattr(fresh, field.attname))
    execution._state.db = fresh._state.db
    return execution
