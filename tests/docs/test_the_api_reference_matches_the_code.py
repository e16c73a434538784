"""``docs/reference/api.md``: every signature as the code has it, every public name, and no name that is not there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import django_durable
from django_durable import Context, Execution, Retry, Step, Workflow
from django_durable.authoring.current import CurrentStep
from django_durable.authoring.options import StartOptions, WorkflowOptions
from django_durable.authoring.step import StepOptions
from django_durable.models import Status
from tests.services.databases import ROOT

PAGE = (ROOT / "docs" / "reference" / "api.md").read_text()

# What the code accepts already for parts that are not there yet, and what only the engine calls.
NOT_DOCUMENTED = {
    Workflow: {
        "named",
        "options",
        "source_digest",
        "signature",
        "start_bound",
        "start_options",
        "alias",
        "order_of_child",
        "order_of_input",
        "run",
        "validators",
        "subscriptions",
        "schedules",
        "order_of_fire",
    },
    Step: {"options", "retry", "run"},
    Context: set[str](),
    CurrentStep: {"name", "lines"},
    WorkflowOptions: {"rest"},
    StepOptions: set(),
    StartOptions: set(),
}


def section(title: str) -> str:
    """What stands below a heading, up to the next one of its level."""
    level, text = re.split(rf"^(##+) {re.escape(title)}$", PAGE, maxsplit=1, flags=re.M)[1:]
    return re.split(rf"^#{{2,{len(level)}}} ", text, maxsplit=1, flags=re.M)[0]


def first_cells(text: str) -> Iterator[str]:
    """The code in the first column of the tables."""
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            yield from re.findall(r"`([^`]+)`", line.split(" | ")[0])


def rendered(name: str, function: Any, *, drop_self: bool = True) -> str:
    """``name(parameters)`` without annotations, defaults as one would write them."""
    parameters = list(inspect.signature(function).parameters.values())
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters[1 if drop_self else 0 :]]
    return f"{name}{inspect.Signature(bare)}".replace("<class 'Exception'>", "Exception")


def documented(text: str) -> dict[str, str]:
    return {cell.partition("(")[0]: cell for cell in first_cells(text)}


@pytest.mark.parametrize(
    ("title", "cls"),
    [("`Workflow`", Workflow), ("`Step`", Step), ("`Context`", Context), ("`current_step()`", CurrentStep)],
)
def test_every_public_member_is_documented_with_its_signature(title: str, cls: type) -> None:
    found = documented(section(title).split("| option of")[0])
    members = set(found)
    for one in [base for base in cls.__mro__ if base.__module__.startswith("django_durable.")]:
        members |= {name for name in vars(one) if not name.startswith("_")}
        if "__init__" in vars(one):
            members |= set(re.findall(r"self\.([a-z]\w*)\b", inspect.getsource(vars(one)["__init__"])))
    assert members - NOT_DOCUMENTED[cls] == set(found)
    for name, said in found.items():
        member = inspect.getattr_static(cls, name, None)
        if inspect.isfunction(member):
            assert said == rendered(name, member)
        else:
            assert said == name


def test_the_verbs_of_an_execution_have_their_signatures_and_its_fields_exist() -> None:
    found = documented(section("`Execution`"))
    statuses = {name for name in found if name in Status.values}
    assert statuses == set(Status.values)
    inherited = {"save", "delete", "using", "is_new", "objects"}
    own = {name for name, member in vars(Execution).items() if inspect.isfunction(member) and name[0] != "_"}
    assert {name for name, said in found.items() if "(" in said} >= own - inherited
    for name, said in found.items():
        if "(" in said:
            assert said == rendered(name, inspect.getattr_static(Execution, name))
        elif name not in statuses:
            assert hasattr(Execution, name), name


@pytest.mark.parametrize(
    ("text", "options", "named"),
    [
        (section("`@workflow`"), WorkflowOptions, {"version"}),
        (section("`@step`"), StepOptions, set()),
        (section("`Workflow`").partition("| option of")[2], StartOptions, set()),
    ],
    ids=["workflow", "step", "using"],
)
def test_every_option_is_documented(text: str, options: type, named: set[str]) -> None:
    cells = {cell for line in text.splitlines() if line.startswith("| `") for cell in first_cells(line)}
    assert cells == (set(inspect.signature(options).parameters) | named) - NOT_DOCUMENTED[options]


def test_retry_has_the_defaults_that_the_page_says() -> None:
    assert f"`{rendered('Retry', Retry, drop_self=False)}`" in PAGE


def test_every_name_of_the_package_is_documented() -> None:
    errors = (ROOT / "docs" / "reference" / "errors.md").read_text()
    missing = [
        name
        for name in django_durable.__all__
        if not re.search(rf"`@?{name}\b", PAGE + errors) and name != "__version__"
    ]
    assert missing == []
