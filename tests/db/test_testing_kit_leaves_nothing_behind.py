"""Whatever a test began with the kit ends with that test: clock, stubs, waits, threads; and lost work is told."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import unittest
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.test import TestCase

from django_durable import Context, NotInStep, current_step, step, testing, workflow
from django_durable.models import DispatchHint
from django_durable.runtime.worker import Worker
from django_durable.testing import DurableKit, DurableTestMixin, live_worker, step_context
from testproject.shop.models import Order
from tests.driving import USING, connection
from tests.services.databases import ROOT

pytest_plugins = ["django_durable.testing.plugin"]

ran: list[str] = []


@step
def note(what: str) -> str:
    ran.append(what)
    return what


@workflow
def notes(ctx: Context, what: str) -> str:
    noted: str = ctx.step(note, what)
    ctx.wait_for_signal("go")
    return noted


def offset() -> timedelta:
    from django_durable import clock

    return clock._offset


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


# -- every verb, three ways ------------------------------------------------------------------------------------------

VERBS = [
    "advance",
    "assert_replays",
    "assert_steps",
    "crash_turn",
    "export_history",
    "fail_step",
    "on_wait",
    "run",
    "run_until_idle",
    "step_context",
    "stub_step",
]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_method_a_mixin_s_method_and_a_function(verb: str) -> None:
    for place in (DurableKit, DurableTestMixin, testing):
        assert callable(getattr(place, verb))
    assert getattr(testing, verb).__name__ == verb
    assert verb in dir(testing)


# -- the end of a kit ------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_end_of_a_kit_undoes_what_it_began() -> None:
    with DurableKit() as durable:
        durable.stub_step(note, returns="stub")
        durable.crash_turn(at_position=7)
        durable.on_wait("go", lambda execution: execution.signal("go"))
        durable.advance(3600)
        assert durable.run(notes, "a").output == "stub"
    assert offset() == timedelta(0)
    with DurableKit() as durable:
        execution = durable.run(notes, "a")
        assert (execution.status, ran) == ("waiting", ["a"])


@pytest.mark.django_db
def test_a_kit_within_a_kit_gives_the_clock_back_to_the_outer_one() -> None:
    with DurableKit() as outer:
        outer.advance(3600)
        with DurableKit() as inner:
            inner.advance(60)
            assert offset() == timedelta(seconds=3660)
        assert offset() == timedelta(seconds=3600)


@pytest.mark.django_db
def test_work_that_can_never_go_on_is_told_at_the_end() -> None:
    kit = DurableKit()
    kit.open()
    execution = notes.start("a")
    kit.run_until_idle()
    execution.signal("go")
    DispatchHint.objects.all().delete()
    kit.advance(60)
    with pytest.raises(AssertionError, match=rf"1 execution\(s\) can never go on.*{execution.pk}"):
        kit.close()
    assert offset() == timedelta(0)
    kit.close()


@pytest.mark.django_db
def test_a_failing_test_fails_with_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError), DurableKit(always_check=True):
        notes.start("a")
        DispatchHint.objects.all().delete()
        raise ZeroDivisionError


@pytest.mark.django_db
def test_a_broken_transaction_is_not_asked() -> None:
    with transaction.atomic(using=USING), DurableKit(always_check=True):
        transaction.set_rollback(True, using=USING)
    assert connection.in_atomic_block


def test_a_kit_that_never_touched_the_database_needs_none() -> None:
    with DurableKit() as durable, durable.step_context(attempt=2) as attempt:
        assert current_step().attempt == attempt.attempt == 2


# -- functions, and the test that they belong to ---------------------------------------------------------------------


class WithFunctions(TestCase):
    seen: list[str] = []

    @classmethod
    def setUpTestData(cls) -> None:
        testing.advance(3600)
        cls.execution = testing.run(notes, "from the class")

    def test_one(self) -> None:
        self._one_and_two()

    def test_two(self) -> None:
        self._one_and_two()

    def _one_and_two(self) -> None:
        assert offset() == timedelta(hours=1)
        testing.advance(60)
        testing.stub_step(note, returns="stub")
        testing.on_wait("go", lambda execution: execution.signal("go"))
        execution = testing.run(notes, "from the test")
        assert (execution.output, self.execution.status) == ("stub", "waiting")

    def test_what_was_lost_is_an_error_of_the_test(self) -> None:
        testing.run_until_idle()
        self.execution.signal("go")
        DispatchHint.objects.all().delete()
        with self.assertRaisesRegex(AssertionError, "can never go on"):
            self.doCleanups_of_kit()

    def doCleanups_of_kit(self) -> None:
        function, arguments, _options = self._cleanups.pop()  # type: ignore[attr-defined]
        function(*arguments)


def run_class(case: type[unittest.TestCase]) -> unittest.TestResult:
    return unittest.defaultTestLoader.loadTestsFromTestCase(case).run(unittest.TestResult())


@pytest.mark.django_db(transaction=True)
def test_a_class_s_kit_ends_with_the_class_and_a_test_s_with_the_test() -> None:
    result = run_class(WithFunctions)
    assert (result.errors, result.failures, result.testsRun) == ([], [], 3)
    assert offset() == timedelta(0)
    assert ran == ["from the class"]


class WithMixinIsLeftBroken(DurableTestMixin, TestCase):
    __test__ = False

    def test_loses_work(self) -> None:
        execution = self.run(notes, "a")
        execution.signal("go")
        DispatchHint.objects.all().delete()
        self.advance(60)


@pytest.mark.django_db(transaction=True)
def test_the_mixin_reports_lost_work_as_the_test_s_own() -> None:
    result = run_class(WithMixinIsLeftBroken)
    assert ["can never go on" in text for _test, text in (*result.errors, *result.failures)] == [True]
    assert offset() == timedelta(0)


def test_the_mixin_comes_first_among_the_bases() -> None:
    with pytest.raises(TypeError, match="DurableTestMixin must come before the TestCase"):
        type("Wrong", (TestCase, DurableTestMixin), {})


def test_functions_need_a_test_that_ends_what_they_begin() -> None:
    raised: list[BaseException] = []

    def elsewhere() -> None:
        try:
            testing.advance(60)
        except RuntimeError as error:
            raised.append(error)

    from django_durable.testing import plugin

    running, plugin.running = plugin.running, None
    try:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    finally:
        plugin.running = running
    assert "no test is running here" in str(raised[0])
    assert offset() == timedelta(0)


# -- step_context ----------------------------------------------------------------------------------------------------


def test_step_context_is_a_step_s_attempt() -> None:
    with step_context(position=3, last_heartbeat={"row": 7}) as attempt:
        assert current_step().idempotency_key == f"{attempt.execution_id}:3"
        assert (current_step().attempt, current_step().last_heartbeat) == (1, {"row": 7})
        current_step().log("copied", rows=3)
        assert [line["message"] for line in attempt.lines] == ["copied"]
        assert not current_step().cancelled
        with step_context(cancelled=True) as inner:
            assert current_step() is inner
            assert current_step().cancelled
        assert current_step() is attempt
    with pytest.raises(NotInStep):
        current_step()


# -- the live worker -------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_live_worker_does_what_is_committed_and_leaves_no_thread(durable: DurableKit) -> None:
    threads = set(threading.enumerate())
    with durable.stub_step(note, returns="stub"), live_worker() as worker:
        assert isinstance(worker, Worker)
        execution = notes.start("a")
        execution.signal("go")
        assert execution.result(timeout=30) == "stub"
    assert set(threading.enumerate()) == threads


def test_the_fixture_gives_a_live_worker(durable_worker: Worker) -> None:
    assert not connection.in_atomic_block
    execution = notes.start("a")
    execution.signal("go")
    assert execution.result(timeout=30) == "a"
    assert durable_worker.turns >= 1


@pytest.mark.django_db
def test_a_live_worker_in_a_transaction_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"django_db\(transaction=True\)"), live_worker():
        pass


@pytest.mark.django_db(transaction=True)
def test_a_live_worker_on_a_database_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "sqlite":
        monkeypatch.setattr(connection, "vendor", "sqlite")
        monkeypatch.setattr(connection.creation, "is_in_memory_db", lambda _name: True, raising=False)
    monkeypatch.setitem(connection.settings_dict, "NAME", "file:memorydb_default?mode=memory&cache=shared")
    with pytest.raises(RuntimeError, match="lives in memory; give it a file for tests"), live_worker():
        pass


# -- the plugin in a session of its own ------------------------------------------------------------------------------


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run pytest on a suite of its own, with the settings of the test project and SQLite in memory."""

    def run(suite: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_suite.py").write_text(textwrap.dedent(suite))
        memory = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
        settings = f"from testproject.settings import *\nDATABASES = {memory!r}\n"
        (tmp_path / "suite_settings.py").write_text(settings)
        plugins = ["-p", "no:cacheprovider", "-p", "django_durable.testing.plugin"]
        argv = [sys.executable, "-W", "error", "-m", "pytest", "-q", *plugins, *options]
        return subprocess.run(
            [*argv, "-c", "/dev/null", "--rootdir", str(tmp_path), "--ds", "suite_settings", "."],
            cwd=tmp_path,
            env={"PYTHONPATH": f"{ROOT}:{tmp_path}", "PATH": ""},
            capture_output=True,
            text=True,
        )

    return run


SUITE = """
    import pytest
    from django_durable import clock, Context, step, testing, workflow
    from django_durable.models import DispatchHint, Execution

    @workflow("suite.sleeps")
    def sleeps(ctx: Context):
        ctx.sleep(86400)
        return "awake"

    @pytest.mark.parametrize("number", range(4))
    def test_fixture(durable, number):
        assert Execution.objects.count() == 0 and not clock._offset
        assert durable.run(sleeps, key="the same").result() == "awake"

    @pytest.mark.django_db
    @pytest.mark.parametrize("number", range(4))
    def test_functions(number):
        assert Execution.objects.count() == 0 and not clock._offset
        assert testing.run(sleeps, key="the same").result() == "awake"
        assert clock._offset
"""
LOST = """
    @pytest.fixture
    def lost(db):
        sleeps.start()
        DispatchHint.objects.all().delete()

    def test_fixture_teardown(durable, lost):
        pass

    @pytest.mark.django_db
    def test_function_teardown():
        testing.run_until_idle()
        sleeps.start()
        DispatchHint.objects.all().delete()

    @pytest.mark.django_db
    def test_the_next_one():
        assert Execution.objects.count() == 0 and not clock._offset
"""


def test_a_suite_passes_in_any_distribution(session: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = session(SUITE)
    assert (done.returncode, "8 passed" in done.stdout) == (0, True), done.stdout + done.stderr
    done = session(SUITE, "-n", "2")
    assert (done.returncode, "8 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_lost_work_is_an_error_at_teardown(session: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = session(SUITE + LOST)
    assert "11 passed, 2 errors" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("can never go on") >= 2


def test_the_plugin_imports_nothing_of_django_before_a_fixture_is_used() -> None:
    code = """
        import sys
        import django_durable.testing.plugin
        print(*[name for name in sys.modules if name.startswith(("django.", "django_durable."))])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["django_durable.testing", "django_durable.testing.plugin"], done.stderr


@pytest.mark.django_db
def test_orders_of_other_tests_are_gone() -> None:
    assert Order.objects.count() == 0
