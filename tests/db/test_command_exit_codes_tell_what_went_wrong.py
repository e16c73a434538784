"""0 ok, 1 refused, 2 usage, 3 not found, 4 unavailable, 5 findings: from a shell and from ``call_command``."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError, connections

from django_durable import Context, Execution, workflow
from django_durable.cli.verbs import VERBS
from django_durable.errors import PlaneUnavailable
from django_durable.ids import time_ordered_id
from django_durable.models import DispatchHint
from tests.calling import durable
from tests.driving import USING, connection
from tests.services.backend import database_variables
from tests.services.project import Project

ON_ONE_EXECUTION = ["show", "history", "signal", "cancel", "retry", "pause", "resume"]
READING = ["tick", "list", "stats", "workflows", "dead-letters", "doctor"]


@workflow("commands.listen")
def listen(ctx: Context) -> None:
    ctx.wait_for_signal("go")


def arguments(verb: str, execution_id: object) -> list[str]:
    return [verb, str(execution_id), *(["go"] if verb == "signal" else [])]


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ON_ONE_EXECUTION)
def test_an_id_that_does_not_exist_is_not_found(verb: str) -> None:
    missing = time_ordered_id()

    called = durable(*arguments(verb, missing))
    assert (called.code, called.out) == (3, "")
    assert str(missing) in called.error
    assert durable(*arguments(verb, "five")).code == 3


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["signal", "cancel", "retry", "pause", "resume"])
def test_what_the_status_does_not_allow_is_refused(verb: str) -> None:
    execution = listen.start()
    execution.cancel(actor="somebody")

    called = durable(*arguments(verb, execution.pk))
    assert (called.code, called.out) == (1, "")
    assert "cancelled" in called.error


@pytest.mark.django_db
def test_findings_have_a_code_of_their_own_and_the_data_is_there() -> None:
    listen.start()
    DispatchHint.objects.all().delete()

    called = durable("doctor", "--json")
    assert called.code == 5
    assert [found["code"] for found in called.data["findings"]] == ["liveness"]
    assert called.error == "1 finding(s): liveness"


@pytest.mark.django_db
@pytest.mark.parametrize("verb", READING)
def test_a_healthy_reading_verb_ends_with_zero(verb: str) -> None:
    called = durable(verb, "--json")
    assert called.code == 0
    json.loads(called.out)


@pytest.mark.parametrize(
    "call",
    [
        [],
        ["lst"],
        ["list", "--colour"],
        ["list", "--status", "faild"],
        ["list", "--limit", "0"],
        ["list", "--limit", "many"],
        ["list", "--after", "five"],
        ["list", "--tag", "colour"],
        ["dead-letters", "--after", "five"],
        ["show"],
        ["start"],
        ["worker", "--concurrency", "0"],
        ["worker", "--queues", "a,,b"],
        ["worker", "--max-turns", "-1"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_a_usage_error_without_a_query(call: list[str]) -> None:
    assert durable(*call).code == 2


@pytest.mark.django_db
@pytest.mark.parametrize("actor", ["", "  "])
def test_an_empty_actor_is_a_usage_error(actor: str) -> None:
    execution = listen.start()

    assert durable("cancel", execution.pk, "--actor", actor).code == 2
    assert Execution.objects.locate(execution.pk).status == "pending"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "error", [OperationalError("connection refused\nhint"), PlaneUnavailable("plane eu is away")]
)
@pytest.mark.parametrize("verb", ["show", "cancel"])
def test_an_outage_is_unavailable_and_never_not_found(
    verb: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = listen.start()

    def away(*_args: object, **_kwargs: object) -> None:
        raise error

    monkeypatch.setattr("django_durable.planes.location.locate", away)
    called = durable(verb, execution.pk)
    assert called.code == 4
    assert str(error).splitlines()[0] in called.error
    assert "hint" not in called.error


@pytest.mark.django_db
def test_a_bug_is_not_dressed_up_as_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise KeyError("oops")

    monkeypatch.setattr("django_durable.cli.stats.measure", broken)
    with pytest.raises(KeyError):
        durable("stats")


@pytest.mark.django_db
def test_a_statement_that_is_wrong_is_a_bug_and_no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT no_such_column")

    monkeypatch.setattr("django_durable.cli.stats.measure", wrong)
    with pytest.raises(DatabaseError):
        durable("stats")


@pytest.mark.django_db
def test_without_data_planes_there_are_none_to_list_and_none_to_change() -> None:
    called = durable("planes", "list", "--json")
    assert (called.code, called.data) == (0, [])
    assert durable("planes", "list").err == f"no data planes: everything is on '{USING}'\n"
    for action in (["add", "north", "default"], ["migrate"], ["place", "acme", "default"], ["bump-epoch", "acme"]):
        called = durable("planes", *action)
        assert (called.code, "DATABASE_ROUTERS" in called.error) == (1, True)


@pytest.mark.django_db
def test_call_command_raises_with_the_return_code() -> None:
    with pytest.raises(CommandError) as caught:
        call_command("durable", "show", "five")
    assert caught.value.returncode == 3


def test_the_shell_sees_the_code_and_no_traceback(project: Project) -> None:
    refused = project.run_manage("durable", "show", "five", expect=3)
    assert refused.stdout == ""
    assert refused.stderr == "CommandError: 'five' is not an execution id (a UUID)\n"

    wrong = project.run_manage("durable", "list", "--colour", expect=2)
    assert wrong.stdout == ""
    assert "unrecognized arguments: --colour" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_traceback_on_request_keeps_the_code(project: Project) -> None:
    refused = project.run_manage("durable", "show", "five", "--traceback", expect=3)
    assert "ExecutionNotFound" in refused.stderr
    assert "Traceback" in refused.stderr


def test_djangos_options_work_before_and_after_the_verb(project: Project) -> None:
    listen.start()
    options = ["--settings", "testproject.settings", "--no-color", "--verbosity", "0", "--skip-checks"]
    after = project.run_manage(
        "durable", "list", "--limit", "1", *options, "--pythonpath", ".", DJANGO_SETTINGS_MODULE="no.such"
    )
    before = project.run_manage("durable", *options, "list", "--limit", "1", DJANGO_SETTINGS_MODULE="no.such")
    assert after.stdout == before.stdout
    assert "commands.listen" in after.stdout
    assert after.stderr == before.stderr == ""


def test_verbosity_zero_before_or_after_the_verb_silences_the_talk(project: Project) -> None:
    listen.start()
    listen.start()
    assert "there are more" in project.run_manage("durable", "list", "--limit", "1").stderr
    assert project.run_manage("durable", "-v", "0", "list", "--limit", "1").stderr == ""
    assert project.run_manage("durable", "list", "--limit", "1", "-v", "0").stderr == ""


def test_a_database_that_cannot_be_reached_is_unavailable(project: Project, tmp_path: Path) -> None:
    postgres = connection.vendor == "postgresql"
    away = f"postgresql://x@/x?host={tmp_path}" if postgres else f"sqlite://{tmp_path}/missing/file"
    for verb in ("list", "stats", "doctor", "tick", "worker"):
        variables = database_variables(away, tmp_path / "other.sqlite3")
        refused = project.run_manage("durable", verb, expect=4, **variables)
        assert refused.stdout == ""
        assert refused.stderr.startswith(f"CommandError: database {USING!r} is unavailable: ")
        assert len(refused.stderr.splitlines()) == 1


def test_missing_migrations_are_named_as_such(project: Project) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_durable_dispatchhint DROP COLUMN revoked")
        cursor.execute("DROP TABLE django_durable_sweepclaim")
    for verb in ("worker", "tick", "stats"):
        refused = project.run_manage("durable", verb, expect=4)
        assert "lacks django_durable_dispatchhint.revoked, django_durable_sweepclaim" in refused.stderr
        assert "manage.py migrate" in refused.stderr


@pytest.mark.parametrize(("count", "reader", "read"), [(200, "head -1", "[\n"), (1, ":", "")])
def test_a_reader_that_goes_away_leaves_no_complaint(project: Project, count: int, reader: str, read: str) -> None:
    """In the middle of what fills the pipe, and before what still waits in a buffer for the end."""
    for _ in range(count):
        listen.start()
    listing = f"{shlex.quote(sys.executable)} manage.py durable list --limit 1000 --json"
    shell = project.spawn(["bash", "-c", f"{listing} | {reader}"], name="pipe", PYTHONUNBUFFERED="")
    finished = shell.finish()
    assert (finished.stdout, finished.stderr) == (read, "")


@pytest.mark.django_db
def test_no_positional_argument_shares_its_name_with_an_option() -> None:
    """``call_command`` looks at all verbs' options together and trips over a required one without a flag."""
    execution = listen.start()

    assert durable("signal", execution.pk, name="go").code == 0
    assert durable("list", workflow="commands.listen", status="pending", key=None, json=True).code == 0


def test_every_verb_has_a_line_of_help() -> None:
    assert all(verb.summary.endswith(".") for verb in VERBS.values())
    assert set(VERBS) >= {*ON_ONE_EXECUTION, *READING, "worker", "start"}
