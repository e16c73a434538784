"""The body of a turn: called with the turn's context, and blocked where it cannot go on with its history."""

from __future__ import annotations

import inspect
import logging
from typing import Any, NoReturn

from django_durable.authoring.context import Context
from django_durable.authoring.hygiene import tidied
from django_durable.authoring.place import Where, entered, guarded_queries
from django_durable.authoring.registry import code_digest
from django_durable.authoring.workflow import Workflow
from django_durable.conf import config
from django_durable.engine.session import Session
from django_durable.engine.transitions import leave
from django_durable.errors import DurableError
from django_durable.payloads import encode_failure

logger = logging.getLogger("django_durable")


def call_body(session: Session, workflow: Workflow[..., Any], arguments: inspect.BoundArguments) -> Any:
    """What the workflow's function returns. Raises whatever it raises, and ``TypeError`` for work not done."""
    policy = config().body_queries
    with guarded_queries(policy), tidied(f"workflow {workflow.name!r}"), entered(Where.BODY, session):
        result = workflow.run(Context(session), *arguments.args, **arguments.kwargs)
    if hasattr(result, "__await__") or inspect.isgenerator(result):
        if hasattr(result, "close"):
            result.close()
        raise TypeError(f"workflow {workflow.name!r} returned a {type(result).__name__}, not a value")
    return result


def block(session: Session, error: DurableError) -> NoReturn:
    """Leave the execution visibly: the code here cannot go on with it."""
    logger.warning("execution %s is blocked: %s", session.claim.id, error.code)
    encoded = encode_failure(error)
    session.suspended = False
    session.leave(lambda _pages: leave.block(session.claim, error=encoded, code=code_digest()))
