"""The tables, and the life of an execution through them.

``start`` writes an **Execution** in the caller's transaction together with the intent to run it: a
**DispatchHint** where the plane is the spine's database, an **Outbox** row where it is not. A worker leases
the hint and claims the execution; its turn appends one **Checkpoint** a position. What arrives from outside is
a **Message**; the execution's row serialises sender and waiter. The end deletes the hints; a failure leaves a
**DeadLetter** that one operator can act on, once.

On every plane (a tenant's own data; written by ``engine`` alone unless said otherwise):

======================  ==========================================================================
Execution               one run of a workflow: row and state in one
Checkpoint              one position of a run's history
Message                 what was sent to an execution, kept until a wait takes it
EventRow, EventTaken    published events, and which execution took which
EventWait               which executions wait for which events: how a publisher finds them
GatheredEvent           events that wait for the run which they start together
ApprovalRequest         what an execution asks a person for, and what was decided
Join                    how far a fan-out has come
Outbox                  intents on their way to the spine; written by ``dispatch``
DeadLetter              a failed, timed out or dead run, one generation each
OperatorNote            who did what and why: the reason stays on the plane
SingletonPlace          who holds a singleton's slot, and who waits for one
TenantEpoch             the tenant's current epoch, the truth for every fence
Schedule, ScheduleFire  what is started when, and what became of each time; by ``operators``
PrunedExecution         removed by retention; what belonged to it is still to go
======================  ==========================================================================

On the spine (ids only, no names, values or error texts; written by ``dispatch`` and ``planes``):

======================  ==========================================================================
DispatchHint            work in flight: due, leased, parked; the lease's expiry lives here only
ExecutionRoute          on which plane an execution lives
DataPlane               a plane: its name, database alias and state
TenantPlacement         the plane of a tenant
OperatorAction          who did which verb to which execution
QueueLimit, QueueStart  a queue with limits, and what has lately begun in it
SweepClaim              when a sweep last ran, so that any number of processes may try
======================  ==========================================================================
"""

from django_durable.models.approval import ApprovalRequest
from django_durable.models.checkpoint import Checkpoint
from django_durable.models.dead_letter import DeadLetter
from django_durable.models.event import EventRow, EventTaken, EventWait
from django_durable.models.execution import Execution, ExecutionQuerySet, Status
from django_durable.models.gathered import GatheredEvent
from django_durable.models.hint import DispatchHint
from django_durable.models.join import Join
from django_durable.models.message import Message
from django_durable.models.operator import OperatorAction, OperatorNote
from django_durable.models.outbox import Outbox
from django_durable.models.placement import DataPlane, ExecutionRoute, TenantPlacement
from django_durable.models.pruned import PrunedExecution
from django_durable.models.queue_limit import QueueLimit, QueueStart
from django_durable.models.schedule import CatchUp, Overlap, Schedule, ScheduleFire
from django_durable.models.singleton import SingletonPlace
from django_durable.models.sweep import SweepClaim
from django_durable.models.tenant import TenantEpoch

PLANE_MODELS = (
    Execution,
    Checkpoint,
    Message,
    EventRow,
    EventTaken,
    EventWait,
    GatheredEvent,
    ApprovalRequest,
    Join,
    Outbox,
    DeadLetter,
    OperatorNote,
    SingletonPlace,
    TenantEpoch,
    Schedule,
    ScheduleFire,
    PrunedExecution,
)
SPINE_MODELS = (
    DispatchHint,
    ExecutionRoute,
    DataPlane,
    TenantPlacement,
    OperatorAction,
    QueueLimit,
    QueueStart,
    SweepClaim,
)

__all__ = [
    "PLANE_MODELS",
    "SPINE_MODELS",
    "ApprovalRequest",
    "CatchUp",
    "Checkpoint",
    "DataPlane",
    "DeadLetter",
    "DispatchHint",
    "EventRow",
    "EventTaken",
    "EventWait",
    "Execution",
    "ExecutionQuerySet",
    "ExecutionRoute",
    "GatheredEvent",
    "Join",
    "Message",
    "OperatorAction",
    "OperatorNote",
    "Outbox",
    "Overlap",
    "PrunedExecution",
    "QueueLimit",
    "QueueStart",
    "Schedule",
    "ScheduleFire",
    "SingletonPlace",
    "Status",
    "SweepClaim",
    "TenantEpoch",
    "TenantPlacement",
]
