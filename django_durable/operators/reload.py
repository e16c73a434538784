"""After a verb the instance in hand shows the row as it is now."""

from __future__ import annotations

from typing import Any

from django_durable.errors import ExecutionNotFound
from django_durable.models import Execution


def reload(execution: Execution[Any]) -> Execution[Any]:
    """Read every column of the instance again. Raises ``ExecutionNotFound``."""
    fresh = Execution._base_manager.using(execution.using).filter(pk=execution.pk).first()
    if fresh is None:
        raise ExecutionNotFound(f"there is no execution {execution.pk}")
    for field in Execution._meta.concrete_fields:
        setattr(execution, field.attname, getattr(fresh, field.attname))
    return execution
