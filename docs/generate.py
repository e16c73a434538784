"""Write the pages of the reference that are made from the code: ``python docs/generate.py``.

``tests/docs/test_the_error_reference_is_what_the_code_says.py`` fails where a committed page is not what this writes.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import django_durable  # noqa: E402
from django_durable import errors  # noqa: E402
from django_durable.errors import DurableError  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "errors.md"

INTRO = """\
<!-- Written by docs/generate.py from django_durable/errors.py and the notes in docs/generate.py: change it there. -->

# Errors

Every error of this package is a `DurableError`. They are in `django_durable.errors`, and those that your code may
want to catch can be imported from `django_durable` too. Each class has a `code`, which stays the same when a message
is reworded: compare codes or classes, never texts.

A message says what was wrong, names the value, and says what to do. It never carries a payload, so it may be logged.

In `execution.error["type"]`, in `StepFailed.error_type` and in the command line's output an error has its qualified
name, such as `django_durable.errors.SignalTimeout`. For an error of your own code that is `shop.errors.SoldOut`, or
`builtins.KeyError`.
"""

NOT_YET = """\
## Not raised yet

These names are taken for what is not there yet; nothing raises them in this version:
{names}.
"""

INTERNAL = {"self", "message", "lineage", "traceback"}
"""Parameters of an error's constructor that are no part of what users read."""

NOTES: dict[str, str] = {
    "DurableError": "The base of all. `message` is the text. Raised itself where a run reaches `MAX_POSITIONS`:"
    " the execution is `blocked` then.",
    "FatalError": "Raise it in a step that no retry can help: see [retries](../how-to/retries.md).",
    "RetryAfter": "Raise it in a step to set the next attempt's time: `RetryAfter(delay, message)`.",
    "DirectCall": "The message has the line, and what to write instead. The execution is `blocked`, so that"
    " mended code can go on with it. See [replay](../explanation/replay.md).",
    "NotInStep": "Raised to the caller of `current_step()`. In tests, put `step_context()` around the call.",
    "StepFailed": "Raised by `ctx.step` once no attempt is left. `message` is the original error's text, and"
    " `is_a(SomeError)` tells whether the original error was one of that class. Uncaught, it ends the execution"
    " `failed`, with the original error's type.",
    "StepTimeout": "`clock` names the option that was exceeded: `timeout` and `total_timeout` (the body ran too"
    " long), `heartbeat_timeout` (it was silent for too long), `queue_timeout` (nobody picked the attempt up; its"
    " body has not begun). It is seen as `StepFailed.error_type` or as an attempt's error, since the body itself"
    " cannot be interrupted. See [steps elsewhere](../how-to/steps-elsewhere.md).",
    "ChildFailed": "Raised by `ctx.child`, `Future.result`, `gather` and `map`, whatever ended the child: `status`"
    " says how (`failed`, `cancelled`, `timed_out`, `dead`), and `is_a(SomeError)` tells whether the error that ended"
    " it was one of that class. A child whose key is taken has not started: its status is `failed` and `child_id`"
    " is empty."
    " See [children](../how-to/children.md).",
    "StepInterrupted": "Seen as `StepFailed.error_type` of an `at_most_once` step: see"
    " [idempotency](../how-to/idempotency.md). The body may have done its work, or a part of it, or nothing.",
    "WaitTimeout": "The base of the timeouts of waits. Raised itself by `ctx.wait_any`.",
    "SignalTimeout": "Raised by `ctx.wait_for_signal` at its `timeout` or `until`.",
    "BudgetExhausted": "Raised by `ctx.spend`, at every replay too; nothing was charged. See [long-running"
    " workflows](../how-to/long-running-workflows.md).",
    "UpdateTimeout": "Raised by `ctx.wait_for_update` at its `timeout` or `until`.",
    "EventTimeout": "Raised by `ctx.wait_for_event` at its `timeout` or `until`.",
    "ApprovalTimeout": "Raised by `ctx.wait_for_approval` at its `timeout` or `until`: from then on it cannot be"
    " decided any more.",
    "CallbackTimeout": "Raised by `Callback.wait` at its `timeout` or `until`. The callback can still be decided.",
    "CallbackFailed": "Raised by `Callback.wait` where `fail_callback` decided it; `message` is what was given.",
    "UpdateRejected": "Raise it in a [validator](../how-to/updates.md): the sender gets it, and nothing is stored.",
    "ExecutionFailed": "Raised by `result()` for an execution that ended `failed`, `timed_out` or `dead`. `error`"
    " is what `execution.error` has.",
    "ExecutionCancelled": "Raised by `result()` for a cancelled execution, and by"
    " `current_step().raise_if_cancelled()` in a step whose result is no longer wanted.",
    "ExecutionTimedOut": 'Seen as `execution.error["type"]` of a `timed_out` execution.',
    "WorkerLost": 'Seen as `execution.error["type"]` of a `dead` execution. Its take-overs list the workers:'
    " `manage.py durable show ID`.",
    "ScheduleNotFound": "Raised by `Schedule.objects.named` and by a verb on a schedule that was removed.",
    "ExecutionNotFound": "Raised by `get` and `locate`, by a verb on an execution that was removed, and for a"
    " callback's token that was not made here.",
    "ExecutionConflict": "Raised by `start`. Another input under the same key is a mistake of the caller. Where"
    " the message says that the snapshot cannot see the winner, try the whole transaction again.",
    "InvalidTransition": "Raised by an operator's verb: resume what is not paused, retry what has not failed,"
    " retry what somebody else has retried (`actor` says who). Also by `result()` where waiting could never"
    " end.",
    "ExecutionClosed": "Raised by `signal`, `send_update`, `decide` and the decision of a callback after the end, and"
    " by `send_update` with a `timeout` where the execution ends without a reply.",
    "UnknownWorkflow": "Raised by a start by name. As the reason of a `blocked` execution: the code that runs"
    " here does not have it; deploy code that does. See [deploying](../how-to/deploying.md).",
    "DefinitionChanged": "The reason of a `blocked` execution of a workflow with `pin=True`. An operator chooses:"
    " deploy that source again, accept this one, or cancel. See [changing running"
    " code](../how-to/changing-running-code.md).",
    "NonDeterminismError": "The reason of a `blocked` execution. The message names the position, what the history"
    " has and what the code asks for. Also where a context is used from another thread. See"
    " [deploying](../how-to/deploying.md).",
    "SuspensionSwallowed": "Ends an execution whose body has a bare `except:` or an `except BaseException` around"
    " an operation of `ctx`, and goes on after it. Catch `Exception`, or raise again.",
    "PayloadTooLarge": "Raised before anything is stored; not retried. Store large things elsewhere and pass a"
    " reference.",
    "UnserializableValue": "Raised before anything is stored; not retried. The message names the step and the"
    " place in the value (`path`). Pass an id or a `Ref` in place of a model instance. A `TypeError` too.",
    "UndecodableValue": "A value was stored by code that knew more: an Enum member, a class, a field that is"
    " gone. Bring it back. A `ValueError` too.",
    "CodecUnavailable": "Raised to whoever starts, signals or reads from outside: try again. Within a turn it is no"
    " error: the execution is put back and tried again a few seconds later, without an attempt used. An `OSError`"
    " too.",
    "TenantRequired": 'Raised by `start`, `get`, `signal` and `publish` where `UNTENANTED` is `"refuse"`.',
    "UnknownTenant": "Raised where a tenant is named that is placed nowhere.",
    "PlaneUnavailable": "An outage, not an absence: try again later.",
    "PlaneNotSelected": "A query of the engine's tables, in a project with several planes.",
    "QueueFull": (
        "Raised by `start` of a [singleton](../how-to/one-at-a-time.md) that has no slot and no place to wait;"
        " nothing is stored. A child that meets it fails with `ChildFailed`."
    ),
    "WrongDatabase": "Raised by `start`, `signal` and `cancel` under the setting `CROSS_DATABASE_START`, and by a"
    " transactional step that writes on another alias. See [transactions](../how-to/transactions.md).",
}


def main() -> None:
    PAGE.write_text(render())


def render() -> str:
    """The page."""
    unused = [cls.__name__ for cls in all_errors() if not is_used(cls)]
    parts = [INTRO, "```text", *tree(DurableError), "```", ""]
    for cls in all_errors():
        if cls.__name__ not in unused:
            parts += section(cls)
    parts.append(NOT_YET.format(names=wrapped(", ".join(f"`{name}`" for name in unused))))
    return "\n".join(parts)


def all_errors() -> list[type[DurableError]]:
    """Every error, in the order of the module."""
    return [
        cls
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, DurableError) and cls.__module__ == errors.__name__
    ]


def tree(cls: type[DurableError], indent: str = "") -> Iterator[str]:
    """The class and those below it, as a tree."""
    yield cls.__name__
    below = cls.__subclasses__()
    for child in below:
        last = child is below[-1]
        for number, line in enumerate(tree(child, indent)):
            corner = ("└── " if last else "├── ") if number == 0 else ("    " if last else "│   ")
            yield corner + line


def section(cls: type[DurableError]) -> list[str]:
    """What there is to say about one error."""
    said = (cls.__doc__ or "").strip().split("\n")[0].replace("``", "`")
    facts = [f"code `{cls.code}`"]
    if attributes := own_attributes(cls):
        facts.append("attributes " + ", ".join(f"`{name}`" for name in attributes))
    if cls.__name__ not in django_durable.__all__:
        facts.append("in `django_durable.errors` only")
    return [f"## `{cls.__name__}`", "", said, "", f"*{'; '.join(facts)}*", "", wrapped(NOTES[cls.__name__]), ""]


def wrapped(text: str) -> str:
    """In lines of the length that the other pages have."""
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False)


def own_attributes(cls: type[DurableError]) -> list[str]:
    """What an instance has besides its message."""
    return [name for name in inspect.signature(cls.__init__).parameters if name not in INTERNAL]


def is_used(cls: type[DurableError]) -> bool:
    """Whether any module but those that declare and export it speaks of it."""
    word = re.compile(rf"\b{cls.__name__}\b")
    return any(word.search(text) for text in sources())


def sources() -> list[str]:
    """The text of every module but those that only declare and export."""
    package = ROOT / "django_durable"
    declaring = {package / "errors.py", package / "__init__.py"}
    return [path.read_text() for path in sorted(package.rglob("*.py")) if path not in declaring]


if __name__ == "__main__":
    main()
