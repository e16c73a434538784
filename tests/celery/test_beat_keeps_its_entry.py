"""Whatever a project does to ``beat_schedule``, before or after ``setup``, a real beat sends the tick."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from celery import Celery

from django_durable import celery as face
from tests.celery.fleet import Fleet

OWN = {"task": "own.task", "schedule": 3600.0}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[Celery]:
    """An application that is set up, in a process that has none otherwise."""
    monkeypatch.setattr(face, "_app", None)
    app = Celery("own", set_as_current=False)
    face.setup(app)
    yield app
    app.close()


def entries(app: Celery) -> set[str]:
    return set(app.conf.beat_schedule)


def test_a_schedule_that_is_set_after_everything_else_keeps_the_entry(fleet: Fleet) -> None:
    fleet.app = "tests.celery.late"
    fleet.beat().wait_for_output("Sending due task django_durable-tick (django_durable.tick)")


def test_a_schedule_in_the_settings_keeps_the_entry(fleet: Fleet) -> None:
    fleet.settings = {"CELERY_BEAT_SCHEDULE": {"own": {"task": "own.task", "schedule": 0.1}}}
    beat = fleet.beat()
    beat.wait_for_output("Sending due task django_durable-tick (django_durable.tick)")
    beat.wait_for_output("Sending due task own (own.task)")


def test_the_entry_is_there_by_itself_and_expires_before_the_next(app: Celery) -> None:
    face.setup(app)
    assert face.installed_app() == app
    [entry] = app.conf.beat_schedule.values()
    assert entry["task"] == "django_durable.tick"
    assert entry["schedule"] == 1.0
    assert 0 < entry["options"]["expires"] < entry["schedule"]
    assert entry["options"]["queue"] == "durable"


def test_it_survives_each_way_of_setting_a_schedule(app: Celery) -> None:
    app.conf.beat_schedule = {"own": OWN}
    assert entries(app) == {"own", face.ENTRY}
    app.finalize()
    app.conf.beat_schedule = {"other": OWN}
    assert entries(app) == {"other", face.ENTRY}
    app.conf.update(beat_schedule={"third": OWN})
    app.conf.beat_schedule["fourth"] = OWN
    app.add_periodic_task(60.0, app.signature("own.task"), name="fifth")
    assert entries(app) == {"third", "fourth", "fifth", face.ENTRY}
    assert set(app.conf["beat_schedule"]) == set(app.conf.get("beat_schedule")) == entries(app)


def test_it_survives_a_configuration_that_is_loaded_anew(app: Celery, monkeypatch: pytest.MonkeyPatch) -> None:
    assert entries(app) == {face.ENTRY}
    module = ModuleType("configuration_of_this_test")
    module.beat_schedule = {"own": OWN}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    app.config_from_object(module.__name__)
    assert entries(app) == {"own", face.ENTRY}


def test_an_application_that_is_configured_already_gets_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(face, "_app", None)
    with Celery("own", set_as_current=False) as app:
        app.conf.beat_schedule = {"own": OWN}
        app.finalize()
        assert entries(app) == {"own"}
        face.setup(app)
        assert entries(app) == {"own", face.ENTRY}


def test_an_entry_of_the_projects_own_for_the_tick_replaces_ours(app: Celery) -> None:
    app.conf.beat_schedule = {"own": {"task": "django_durable.tick", "schedule": 5.0}}
    assert entries(app) == {"own"}


def test_other_applications_get_nothing(app: Celery) -> None:
    with Celery("other", set_as_current=False) as other:
        assert entries(app) == {face.ENTRY}
        assert entries(other) == set()
        assert "django_durable.run" not in other.tasks
