"""Durable execution for Django: workflows as plain functions, checkpointed in your own database.

Every public name is importable from here, but loaded when first used: importing the package touches neither
models nor settings, so that it can stand at the top of a settings file or a Celery module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

_ERRORS = (
    "BudgetExhausted",
    "CallbackFailed",
    "CallbackTimeout",
    "ApprovalTimeout",
    "ChildFailed",
    "CodecUnavailable",
    "DefinitionChanged",
    "DirectCall",
    "DurableError",
    "EventTimeout",
    "ExecutionCancelled",
    "ExecutionClosed",
    "ExecutionConflict",
    "ExecutionFailed",
    "ExecutionNotFound",
    "FatalError",
    "InvalidTransition",
    "LeaseLost",
    "NonDeterminismError",
    "NotInStep",
    "PayloadTooLarge",
    "PlaneNotSelected",
    "PlaneUnavailable",
    "QueueFull",
    "RetryAfter",
    "SignalTimeout",
    "StepFailed",
    "StepTimeout",
    "SuspensionSwallowed",
    "TenantRequired",
    "UndecodableValue",
    "UnknownTenant",
    "UnknownWorkflow",
    "UnserializableValue",
    "UpdateRejected",
    "UpdateTimeout",
    "WaitTimeout",
    "WrongDatabase",
)

_HOMES = {
    "Approval": "django_durable.authoring.approval",
    "Arrived": "django_durable.authoring.arrived",
    "Batch": "django_durable.authoring.future",
    "Call": "django_durable.authoring.call",
    "Callback": "django_durable.authoring.callback",
    "Context": "django_durable.authoring.context",
    "Debounce": "django_durable.authoring.debounce",
    "Execution": "django_durable.models",
    "FlowQueue": "django_durable.dispatch.flow_queue",
    "Future": "django_durable.authoring.future",
    "Ref": "django_durable.payloads",
    "Retry": "django_durable.authoring.retry",
    "Singleton": "django_durable.authoring.singleton",
    "Step": "django_durable.authoring.step",
    "Update": "django_durable.authoring.update",
    "Workflow": "django_durable.authoring.workflow",
    "complete_callback": "django_durable.operators.callback",
    "current_step": "django_durable.authoring.current",
    "event": "django_durable.authoring.source",
    "fail_callback": "django_durable.operators.callback",
    "register_value": "django_durable.payloads",
    "step": "django_durable.authoring.step",
    "update": "django_durable.authoring.source",
    "value_type": "django_durable.payloads",
    "workflow": "django_durable.authoring.workflow",
    **dict.fromkeys(_ERRORS, "django_durable.errors"),
}

if TYPE_CHECKING:
    from django_durable.authoring.approval import Approval as Approval
    from django_durable.authoring.arrived import Arrived as Arrived
    from django_durable.authoring.call import Call as Call
    from django_durable.authoring.callback import Callback as Callback
    from django_durable.authoring.context import Context as Context
    from django_durable.authoring.current import current_step as current_step
    from django_durable.authoring.debounce import Debounce as Debounce
    from django_durable.authoring.future import Batch as Batch
    from django_durable.authoring.future import Future as Future
    from django_durable.authoring.retry import Retry as Retry
    from django_durable.authoring.singleton import Singleton as Singleton
    from django_durable.authoring.source import event as event
    from django_durable.authoring.source import update as update
    from django_durable.authoring.step import Step as Step
    from django_durable.authoring.step import step as step
    from django_durable.authoring.update import Update as Update
    from django_durable.authoring.workflow import Workflow as Workflow
    from django_durable.authoring.workflow import workflow as workflow
    from django_durable.dispatch.flow_queue import FlowQueue as FlowQueue
    from django_durable.errors import ApprovalTimeout as ApprovalTimeout
    from django_durable.errors import BudgetExhausted as BudgetExhausted
    from django_durable.errors import CallbackFailed as CallbackFailed
    from django_durable.errors import CallbackTimeout as CallbackTimeout
    from django_durable.errors import ChildFailed as ChildFailed
    from django_durable.errors import CodecUnavailable as CodecUnavailable
    from django_durable.errors import DefinitionChanged as DefinitionChanged
    from django_durable.errors import DirectCall as DirectCall
    from django_durable.errors import DurableError as DurableError
    from django_durable.errors import EventTimeout as EventTimeout
    from django_durable.errors import ExecutionCancelled as ExecutionCancelled
    from django_durable.errors import ExecutionClosed as ExecutionClosed
    from django_durable.errors import ExecutionConflict as ExecutionConflict
    from django_durable.errors import ExecutionFailed as ExecutionFailed
    from django_durable.errors import ExecutionNotFound as ExecutionNotFound
    from django_durable.errors import FatalError as FatalError
    from django_durable.errors import InvalidTransition as InvalidTransition
    from django_durable.errors import LeaseLost as LeaseLost
    from django_durable.errors import NonDeterminismError as NonDeterminismError
    from django_durable.errors import NotInStep as NotInStep
    from django_durable.errors import PayloadTooLarge as PayloadTooLarge
    from django_durable.errors import PlaneNotSelected as PlaneNotSelected
    from django_durable.errors import PlaneUnavailable as PlaneUnavailable
    from django_durable.errors import QueueFull as QueueFull
    from django_durable.errors import RetryAfter as RetryAfter
    from django_durable.errors import SignalTimeout as SignalTimeout
    from django_durable.errors import StepFailed as StepFailed
    from django_durable.errors import StepTimeout as StepTimeout
    from django_durable.errors import SuspensionSwallowed as SuspensionSwallowed
    from django_durable.errors import TenantRequired as TenantRequired
    from django_durable.errors import UndecodableValue as UndecodableValue
    from django_durable.errors import UnknownTenant as UnknownTenant
    from django_durable.errors import UnknownWorkflow as UnknownWorkflow
    from django_durable.errors import UnserializableValue as UnserializableValue
    from django_durable.errors import UpdateRejected as UpdateRejected
    from django_durable.errors import UpdateTimeout as UpdateTimeout
    from django_durable.errors import WaitTimeout as WaitTimeout
    from django_durable.errors import WrongDatabase as WrongDatabase
    from django_durable.models import Execution as Execution
    from django_durable.operators.callback import complete_callback as complete_callback
    from django_durable.operators.callback import fail_callback as fail_callback
    from django_durable.payloads import Ref as Ref
    from django_durable.payloads import register_value as register_value
    from django_durable.payloads import value_type as value_type

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
