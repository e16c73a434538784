"""``durable prune``: what goes, what would go, what stays and why, in numbers."""

from __future__ import annotations

import getpass
import json
from typing import Any

import pytest
from django.test import override_settings

from django_durable import Context, Execution, workflow
from django_durable.models import OperatorAction
from tests.calling import durable
from tests.driving import USING, drain

pytestmark = pytest.mark.django_db


@workflow("pruned.report")
def report(ctx: Context, number: int = 0) -> int:
    return number


@workflow("pruned.reports_nothing")
def reports_nothing(ctx: Context) -> None:
    raise ValueError


@pytest.fixture(autouse=True)
def ended(db: None) -> None:
    for number in range(3):
        report.start(number)
    reports_nothing.start()
    drain()


def document(*options: str) -> dict[str, Any]:
    called = durable("prune", "--json", *options)
    assert called.code == 0, called.err
    found: dict[str, Any] = json.loads(called.out)
    return found


def count() -> int:
    return Execution.objects.using(USING).count()


def test_a_dry_run_counts_rows_and_bytes_and_says_what_stays() -> None:
    found = document("--dry-run", "--older-than", "0")
    assert (found["dry_run"], found["trees"], found["executions"]) == (True, 3, 3)
    assert found["kept"] == {"open_dead_letter": 1}
    assert found["bytes"] > 0
    assert count() == 4
    assert not OperatorAction.objects.using(USING).exists()


def test_it_removes_and_notes_who_did_it() -> None:
    found = document("--older-than", "0", "--limit", "2")
    assert (found["trees"], found["bytes"], count()) == (2, None, 2)
    document("--older-than", "0", "--actor", "ann")
    actions = OperatorAction.objects.using(USING).order_by("pk")
    assert [(one.verb, one.actor) for one in actions] == [("prune", getpass.getuser()), ("prune", "ann")]


def test_without_an_age_the_setting_decides() -> None:
    with override_settings(DURABLE={"SPINE": USING, "RETENTION": {"completed": 3600}}):
        assert document()["trees"] == 0
    with override_settings(DURABLE={"SPINE": USING, "RETENTION": {"completed": 0.000001}}):
        assert document()["trees"] == 3


def test_dead_letters_go_when_a_person_says_so() -> None:
    assert document("--older-than", "0", "--status", "failed", "--dead-letters")["trees"] == 1
    assert count() == 3


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "RETENTION"),
        (["--older-than", "soon"], "--older-than"),
        (["--older-than", "-1d"], "--older-than"),
        (["--older-than", "1d", "--status", "running"], "no status of an end"),
        (["--older-than", "1d", "--limit", "0"], "--limit"),
        (["--older-than", "1d", "--actor", " "], "--actor"),
    ],
)
def test_what_makes_no_sense_is_refused(options: list[str], told: str) -> None:
    called = durable("prune", *options)
    assert (called.code, count()) == (2, 4)
    assert told in called.error


def test_an_unknown_plane_is_not_found() -> None:
    assert durable("prune", "--older-than", "1d", "--plane", "nowhere").code == 3


@pytest.mark.parametrize(("age", "trees"), [("0", 3), ("0s", 3), ("90m", 0), ("12h", 0), ("30d", 0), ("8w", 0)])
def test_an_age_may_have_a_unit(age: str, trees: int) -> None:
    assert document("--dry-run", "--older-than", age)["trees"] == trees
