"""The registry: every workflow and step that this process knows. Names from data resolve here only."""

from __future__ import annotations

import hashlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from django.apps import apps

from django_durable.dispatch.definitions import known_hashes
from django_durable.errors import UnknownWorkflow

if TYPE_CHECKING:
    from django_durable.authoring.step import Step
    from django_durable.authoring.workflow import Workflow

_workflows: dict[tuple[str, str], Workflow[..., Any]] = {}
_steps: dict[str, Step[..., Any]] = {}
_problems: list[tuple[str, str, str]] = []
_unnamed: list[Workflow[..., Any]] = []
_lock = threading.RLock()
_code: str | None = None


def problems() -> list[tuple[str, str, str]]:
    """What is wrong with the declarations: (kind, message, hint), kind duplicate, nested or signature."""
    _name_all()
    return list(_problems)


def add_workflow(workflow: Workflow[..., Any]) -> None:
    """Register a workflow; its name is settled once the apps are loaded.

    Raises ``ValueError`` for a second definition of one name and version in another place; a collision that only
    shows once the apps are loaded is a system-check error, since both modules are imported by then.
    """
    with _lock:
        before = len(_problems)
        _unnamed.append(workflow)
        if apps.apps_ready:
            _name_all()
            for kind, message, hint in _problems[before:]:
                if kind == "duplicate":
                    raise ValueError(f"{message}. {hint}")


def _name_all() -> None:
    """Give names to workflows that were declared before the apps were loaded."""
    with _lock:
        if not apps.apps_ready:
            return
        while _unnamed:
            _put(_unnamed.pop(0))


def _put(workflow: Workflow[..., Any]) -> None:
    global _code
    identity = (workflow.name, workflow.version)
    known = _workflows.get(identity)
    if known is not None and not same_place(known.func, workflow.func):
        _problems.append(
            (
                "duplicate",
                f"two workflows are declared as {workflow.name!r} version {workflow.version!r}:"
                f" {place_of(known.func)} and {place_of(workflow.func)}",
                "Rename one of them, or give it another version.",
            )
        )
        return
    if "<locals>" in workflow.func.__qualname__ and not workflow.named:
        _problems.append(
            (
                "nested",
                f"workflow {workflow.name!r} is declared inside a function ({place_of(workflow.func)})",
                "Move it to the module level, so that every process that imports the module knows it.",
            )
        )
    _workflows[identity] = workflow
    _code = None


def add_step(step: Step[..., Any]) -> None:
    """Register a step. Raises ``ValueError`` for a second definition of its name in another place."""
    global _code
    with _lock:
        known = _steps.get(step.name)
        if known is not None and not same_place(known.func, step.func):
            raise ValueError(
                f"two steps are declared as {step.name!r}: {place_of(known.func)} and {place_of(step.func)};"
                " rename one of them"
            )
        _steps[step.name] = step
        if known is None or known.func is not step.func:
            _code = None


def declared_step(name: str) -> Step[..., Any]:
    """The step of this name. Raises ``UnknownWorkflow`` where no module that is imported here declares it."""
    found = _steps.get(name)
    if found is None:
        raise UnknownWorkflow(
            f"no step {name!r} is declared here; a step that runs elsewhere is declared with @step in a module that"
            " every process imports"
        )
    return found


def find_workflow(name: str, version: str | None = None) -> Workflow[..., Any]:
    """The workflow of this name and version, the newest where none is given. Raises ``UnknownWorkflow``."""
    _name_all()
    if version is not None:
        exact = _workflows.get((name, version))
        if exact is not None:
            return exact
        versions = _versions_of(name)
        known = f"; known versions: {', '.join(versions)}" if versions else ""
        raise UnknownWorkflow(
            f"workflow {name!r} version {version!r} is not registered here{known}; keep it deployed until its"
            " last run has ended"
        )
    versions = _versions_of(name)
    if not versions:
        raise UnknownWorkflow(
            f"no workflow {name!r} is registered here; is its module imported (workflows.py of an installed app)?"
        )
    return _workflows[(name, versions[-1])]


def _versions_of(name: str) -> list[str]:
    with _lock:
        return sorted((v for n, v in _workflows if n == name), key=version_order)


def version_order(version: str) -> tuple[int, ...]:
    """Dotted integers in numeric order: 1.10 is newer than 1.9."""
    return tuple(int(part) for part in version.split("."))


def all_workflows() -> Iterator[Workflow[..., Any]]:
    """Every registered workflow, by name and version."""
    _name_all()
    with _lock:
        known = list(_workflows.items())
    for _identity, workflow in sorted(known, key=lambda item: (item[0][0], version_order(item[0][1]))):
        yield workflow


def find_step(name: str) -> Step[..., Any] | None:
    """The step of this name, where one is registered."""
    return _steps.get(name)


def served_hashes() -> tuple[str, ...]:
    """The definition hashes of everything registered here: what a worker of this process may lease."""
    _name_all()
    with _lock:
        return tuple(known_hashes(_workflows))


def declared_queues() -> set[str]:
    """The queues that declarations of workflows and steps name."""
    _name_all()
    with _lock:
        named = [w.options.queue for w in _workflows.values()] + [s.options.queue for s in _steps.values()]
    return {queue for queue in named if queue}


def code_digest() -> str:
    """Sixteen hex digits over the sources of all modules that declare workflows or steps.

    What this code could not go on with, other code may: it looks again where the digest differs.
    """
    global _code
    _name_all()
    with _lock:
        if _code is None:
            _code = _digest_of_modules()
        return _code


def _digest_of_modules() -> str:
    functions = [w.func for w in _workflows.values()] + [s.func for s in _steps.values()]
    modules = sorted({function.__module__ for function in functions})
    names = sorted(f"{name}\x00{version}" for name, version in _workflows)
    text = "\x00".join([*names, *(_source_of(module) for module in modules)])
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def _source_of(module: str) -> str:
    loaded = sys.modules.get(module)
    try:
        return inspect.getsource(loaded) if loaded is not None else module
    except (OSError, TypeError):
        return module


def source_digest(function: Callable[..., Any]) -> str:
    """A digest of one function's source: informs, and pins runs of ``pin=True`` workflows."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = repr(function.__code__.co_code)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def same_place(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Whether two functions are the same definition: a reloaded module, or a nested function made anew."""
    first, second = one.__code__, other.__code__
    return (first.co_filename, first.co_qualname) == (second.co_filename, second.co_qualname)


def place_of(function: Callable[..., Any]) -> str:
    """``module:line``."""
    return f"{function.__module__}:{function.__code__.co_firstlineno}"


def label_of(module: str) -> str:
    """The label of the installed app that contains a module; the module's own name where none does."""
    contained = apps.get_containing_app_config(module)
    return contained.label if contained is not None else module


def forget(workflow: Workflow[..., Any]) -> None:
    """Take a workflow out again: for tests of what happens when code is gone."""
    global _code
    with _lock:
        _workflows.pop((workflow.name, workflow.version), None)
        _code = None
