"""A healthy project yields no message, and each fault yields exactly its own id."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import schedule
from django.core import mail
from django.core.checks import CheckMessage
from django.core.checks.registry import registry
from django.db import NotSupportedError, connections
from django.db.backends.postgresql import psycopg_any
from pytest_django import DjangoDbBlocker

import django_durable
from django_durable import checks

SQLITE = {
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
}
TICK = {"tick": {"task": "django_durable.tick", "schedule": 1.0}}
PACKAGE = Path(django_durable.__file__).parent
REFERENCE = PACKAGE.parent / "docs" / "reference" / "checks.md"


def named_callable(request: object) -> None:
    """A tenant resolver of the right form."""


NOT_CALLABLE = 1


class Retry:
    """Stands in for the real one, which lives on a higher floor."""

    def __init__(self, *, max_attempts: int = 3) -> None:
        if max_attempts < 1:
            raise ValueError("max_attempts must be at least 1.")


class Allowing:
    """Stands in for a permission class of Django REST framework."""

    def has_permission(self, request: object, view: object) -> bool:
        return True


class Rig:
    """A healthy project, to be broken in one place."""

    def __init__(self, settings: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.settings = settings
        self.monkeypatch = monkeypatch
        self.folder = folder
        self.aliases: list[str] = []
        settings.USE_TZ = True
        settings.DATABASE_ROUTERS = []
        settings.CELERY_TASK_ALWAYS_EAGER = False
        for name in ("celery", "authoring.registry", "authoring.retry"):
            self.module(name, None)
        self.database("spine")
        self.durable()

    def durable(self, **keys: object) -> None:
        self.settings.DURABLE = {"SPINE": "spine", **keys}

    def database(self, alias: str, *, options: dict[str, str] = SQLITE, **entry: object) -> Any:
        whole = {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(self.folder / alias),
            "OPTIONS": options,
            **entry,
        }
        self.forget(alias)
        configured = connections.configure_settings({"default": {}, alias: whole})[alias]
        self.monkeypatch.setitem(connections.settings, alias, configured)
        self.aliases.append(alias)
        return connections[alias]

    def server(self, version: tuple[int, ...]) -> Any:
        """The spine on a PostgreSQL of this version; nothing connects."""
        connection = self.database("spine", ENGINE="django.db.backends.postgresql", options={}, NAME="spine")
        connection.get_database_version = lambda: version
        return connection

    def module(self, name: str, module: ModuleType | None) -> ModuleType | None:
        self.monkeypatch.setitem(sys.modules, f"django_durable.{name}", module)
        return module

    def celery(self, **conf: object) -> Celery:
        app = Celery("shop", set_as_current=False)
        app.conf.update({"beat_schedule": TICK, **conf})
        module = ModuleType("django_durable.celery")
        module.installed_app = lambda: app  # type: ignore[attr-defined]
        self.module("celery", module)
        return app

    def definitions(self, *problems: tuple[str, str, str]) -> None:
        module = ModuleType("django_durable.authoring.registry")
        module.problems = lambda: list(problems)  # type: ignore[attr-defined]
        self.module("authoring.registry", module)

    def retry(self) -> None:
        module = ModuleType("django_durable.authoring.retry")
        module.Retry = Retry  # type: ignore[attr-defined]
        self.module("authoring.retry", module)

    def messages(self) -> list[CheckMessage]:
        """What our checks say when every database is asked."""
        ours = [each for each in registry.get_checks() if each.__module__.startswith("django_durable.checks")]
        found = [each(app_configs=None, databases=list(self.aliases)) for each in ours]
        return [message for messages in found for message in messages]

    def ids(self) -> list[str | None]:
        return [message.id for message in self.messages()]

    def forget(self, alias: str) -> None:
        if alias in self.aliases:
            self.aliases.remove(alias)
            connections[alias].close()
            del connections[alias]


@pytest.fixture
def rig(
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Rig]:
    with django_db_blocker.unblock():
        made = Rig(settings, monkeypatch, tmp_path)
        yield made
        for alias in list(made.aliases):
            made.forget(alias)


def eager(rig: Rig) -> None:
    rig.celery(task_always_eager=True)
    rig.monkeypatch.delattr(mail, "outbox")


def psycopg2(rig: Rig) -> None:
    rig.server((15, 4))
    rig.monkeypatch.setattr(psycopg_any, "is_psycopg3", False)


def sqlite_too_old(rig: Rig) -> None:
    connections["spine"].get_database_version = lambda: (3, 36, 0)  # type: ignore[method-assign]


def refused_by_django(rig: Rig) -> None:
    def refuse() -> tuple[int, ...]:
        raise NotSupportedError("PostgreSQL 14 or later is required (found 12.9).")

    rig.server(()).get_database_version = refuse


def two_planes(rig: Rig) -> None:
    rig.database("eu")
    rig.durable(PLANES={"eu": "eu", "home": "spine"})


def foreign_requests(rig: Rig) -> None:
    rig.database("web", ATOMIC_REQUESTS=True)


def routed_plane(rig: Rig, **entry: object) -> None:
    """A plane with the router, so that only what the entry says can be wrong."""
    rig.database("eu", **entry)  # type: ignore[arg-type]
    rig.durable(PLANES={"eu": "eu"})
    rig.settings.DATABASE_ROUTERS = [type("PlaneRouter", (), {"__module__": "django_durable.routers"})()]


def remote_plane(rig: Rig, **options: str) -> None:
    rig.monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    entry = {"ENGINE": "django.db.backends.postgresql", "HOST": "db.example.org", "NAME": "eu"}
    routed_plane(rig, options=options, **entry)
    connections["eu"].get_database_version = lambda: (15, 4)  # type: ignore[method-assign]


def local_plane(rig: Rig) -> None:
    remote_plane(rig)
    connections["eu"].settings_dict["HOST"] = "/run/postgresql"


def bad_retry(rig: Rig, value: object) -> None:
    rig.retry()
    rig.durable(DEFAULT_RETRY=value)


HERE = __name__
FAULTS: list[tuple[str, str, Callable[[Rig], object]]] = [
    ("durable.E001", "a list", lambda rig: setattr(rig.settings, "DURABLE", ["SPINE"])),
    ("durable.E002", "unknown key", lambda rig: rig.durable(LEASE=3)),
    ("durable.E003", "wrong type", lambda rig: rig.durable(LEASE_SECONDS="3")),
    ("durable.E004", "out of range", lambda rig: rig.durable(LEASE_SECONDS=-3)),
    ("durable.E005", "poll longer than the lease", lambda rig: rig.durable(POLL_SECONDS=60)),
    ("durable.E006", "unknown spine", lambda rig: rig.durable(SPINE="nowhere")),
    ("durable.E007", "no such module", lambda rig: rig.durable(TENANT_RESOLVER="nowhere.at_all")),
    ("durable.E007", "no such name", lambda rig: rig.durable(CODECS=[f"{HERE}.nothing"])),
    ("durable.E007", "not callable", lambda rig: rig.durable(TENANT_RESOLVER=f"{HERE}.NOT_CALLABLE")),
    ("durable.E007", "REST class", lambda rig: rig.durable(REST_PERMISSION_CLASSES=["nowhere.at.All"])),
    ("durable.E008", "unknown option", lambda rig: bad_retry(rig, {"attempts": 3})),
    ("durable.E008", "refused option", lambda rig: bad_retry(rig, {"max_attempts": 0})),
    ("durable.E008", "something else", lambda rig: bad_retry(rig, object())),
    ("durable.E010", "naive times", lambda rig: setattr(rig.settings, "USE_TZ", False)),
    ("durable.E011", "planes without router", two_planes),
    ("durable.E012", "no autocommit", lambda rig: rig.database("spine", AUTOCOMMIT=False)),
    ("durable.E020", "old SQLite", sqlite_too_old),
    ("durable.E021", "old PostgreSQL", lambda rig: rig.server((13, 9))),
    ("durable.E021", "older than Django allows", refused_by_django),
    ("durable.E022", "psycopg2", psycopg2),
    ("durable.E030", "duplicate", lambda rig: rig.definitions(("duplicate", "Twice.", "Rename one."))),
    ("durable.E031", "nested", lambda rig: rig.definitions(("nested", "Nested.", "Move it."))),
    ("durable.E032", "signature", lambda rig: rig.definitions(("signature", "No ctx.", "Add it."))),
    ("durable.W001", "short lease", lambda rig: rig.durable(LEASE_SECONDS=0.5)),
    ("durable.E009", "class of another kind", lambda rig: rig.durable(REST_THROTTLE_CLASSES=[f"{HERE}.Retry"])),
    ("durable.W004", "no throttle", lambda rig: rig.durable(REST_THROTTLE_CLASSES=[])),
    ("durable.W002", "open API", lambda rig: rig.durable(REST_PERMISSION_CLASSES=[])),
    ("durable.W003", "shared plane", lambda rig: rig.durable(PLANES={"a": "spine", "b": "spine"})),
    ("durable.W010", "request on another database", foreign_requests),
    ("durable.W011", "requests on a plane", lambda rig: routed_plane(rig, ATOMIC_REQUESTS=True)),
    ("durable.W022", "no connect timeout", remote_plane),
    (
        "durable.W020",
        "found without WAL",
        lambda rig: rig.database("spine", options={"transaction_mode": "EXCLUSIVE"}),
    ),
    (
        "durable.W020",
        "set to another mode",
        lambda rig: rig.database("spine", options={**SQLITE, "init_command": "PRAGMA journal_mode = 'delete'"}),
    ),
    (
        "durable.W021",
        "default mode",
        lambda rig: rig.database("spine", options={"init_command": SQLITE["init_command"]}),
    ),
    (
        "durable.W021",
        "deferred",
        lambda rig: rig.database("spine", options={**SQLITE, "transaction_mode": "deferred"}),
    ),
    ("durable.W030", "eager", eager),
    ("durable.W031", "no tick", lambda rig: rig.celery(beat_schedule={"mine": {"task": "shop.tick"}})),
]


def test_a_healthy_project_yields_no_message(rig: Rig) -> None:
    assert rig.messages() == []


@pytest.mark.parametrize(("identity", "fault"), [pytest.param(i, f, id=f"{i} {name}") for i, name, f in FAULTS])
def test_a_fault_yields_exactly_its_own_id(rig: Rig, identity: str, fault: Callable[[Rig], object]) -> None:
    fault(rig)
    messages = rig.messages()
    assert [message.id for message in messages] == [identity]
    assert messages[0].msg
    assert messages[0].hint
    assert messages[0].is_serious() is identity.startswith("durable.E")


HEALTHY: dict[str, Callable[[Rig], object]] = {
    "everything set": lambda rig: rig.durable(
        TENANT_RESOLVER=f"{HERE}.named_callable",
        CODECS=[f"{HERE}.NOT_CALLABLE"],
        REST_PERMISSION_CLASSES=[Allowing, f"{HERE}.Allowing"],
        RETENTION={"*": 60},
        REDACT=["*token*"],
        LEASE_SECONDS=1,
    ),
    "a good retry": lambda rig: bad_retry(rig, {"max_attempts": 5}),
    "a ready retry": lambda rig: bad_retry(rig, Retry()),
    "a retry while no step is defined": lambda rig: rig.durable(DEFAULT_RETRY={"max_attempts": 5}),
    "requests on the only database": lambda rig: rig.database("spine", ATOMIC_REQUESTS=True),
    "in-memory SQLite": lambda rig: rig.database("spine", NAME=":memory:", options={}),
    "WAL kept by the file": lambda rig: (
        connections["spine"].ensure_connection(),
        rig.database("spine", options={"transaction_mode": "IMMEDIATE"}),
    ),
    "a plane with its router": routed_plane,
    "a plane with a connect timeout": lambda rig: remote_plane(rig, connect_timeout="5"),
    "a plane by a Unix socket": local_plane,
    "a spine without a connect timeout": lambda rig: (
        rig.server((15, 4)),
        connections["spine"].settings_dict.update(HOST="db.example.org"),
    ),
    "PostgreSQL 14": lambda rig: rig.server((14, 0)),
    "PostgreSQL 18": lambda rig: rig.server((18, 1)),
    "Celery with its tick": lambda rig: rig.celery(),
    "eager Celery in tests": lambda rig: rig.celery(task_always_eager=True),
    "eager Celery without us": lambda rig: setattr(rig.settings, "CELERY_TASK_ALWAYS_EAGER", True),
    "definitions without problems": lambda rig: rig.definitions(),
    "a database that is not ours": lambda rig: rig.database("other", options={}, AUTOCOMMIT=False),
}


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in HEALTHY.items()])
def test_a_sound_variant_yields_no_message(rig: Rig, change: Callable[[Rig], object]) -> None:
    change(rig)
    assert rig.messages() == []


def test_django_s_own_setting_for_celery_counts_where_our_tasks_are_installed(rig: Rig) -> None:
    rig.celery()
    rig.settings.CELERY_TASK_ALWAYS_EAGER = True
    rig.monkeypatch.delattr(mail, "outbox")
    assert rig.ids() == ["durable.W030"]


def test_a_schedule_entry_object_is_a_tick_too(rig: Rig) -> None:
    app = rig.celery()
    entry = ScheduleEntry(name="tick", task="django_durable.tasks.tick", schedule=schedule(1), app=app)
    app.conf.beat_schedule = {"tick": entry}
    assert rig.ids() == []


def test_planes_on_databases_of_their_own_need_the_router_or_a_subclass(rig: Rig) -> None:
    two_planes(rig)
    parent = type("PlaneRouter", (), {"__module__": "django_durable.routers"})
    rig.settings.DATABASE_ROUTERS = [type("OurRouter", (parent,), {})()]
    assert rig.ids() == []


def test_requests_on_another_database_are_fine_where_that_was_chosen(rig: Rig) -> None:
    foreign_requests(rig)
    rig.durable(CROSS_DATABASE_START="warn")
    assert rig.ids() == []


def test_every_database_of_the_engine_is_looked_at(rig: Rig) -> None:
    two_planes(rig)
    rig.database("eu", options={}, AUTOCOMMIT=False)
    rig.settings.DATABASE_ROUTERS = [type("PlaneRouter", (), {"__module__": "django_durable.routers"})()]
    assert sorted(filter(None, rig.ids())) == ["durable.E012", "durable.W020", "durable.W021"]


def test_several_faults_are_reported_side_by_side(rig: Rig) -> None:
    rig.durable(LEASE=3, MAX_POSITIONS=0, TENANT_RESOLVER="nowhere.at_all")
    rig.settings.USE_TZ = False
    assert sorted(filter(None, rig.ids())) == ["durable.E002", "durable.E004", "durable.E007", "durable.E010"]


def test_no_database_is_asked_unless_django_is_told_to(rig: Rig, django_db_blocker: DjangoDbBlocker) -> None:
    rig.database("spine", options={"transaction_mode": "IMMEDIATE"})
    rig.aliases.remove("spine")
    with django_db_blocker.block():
        assert rig.ids() == []
        ours = [each for each in registry.get_checks() if each.__module__.startswith("django_durable.checks")]
        assert [message for each in ours for message in each(app_configs=None, databases=None)] == []
    rig.aliases.append("spine")


def test_registering_again_changes_nothing() -> None:
    before = registry.get_checks()
    checks.register()
    assert set(registry.get_checks()) == set(before)


def test_only_the_check_that_asks_a_database_has_the_database_tag() -> None:
    ours = [each for each in registry.get_checks() if each.__module__.startswith("django_durable.checks")]
    tags = {each.__name__: each.tags for each in ours}
    assert tags.pop("check_databases") == ("database",)
    assert set(tags.values()) == {("durable",)}


@pytest.mark.parametrize(
    ("identity", "fault"),
    [pytest.param(i, f, id=f"{i} {name}") for i, name, f in FAULTS if i[:-1] != "durable.E03"],
)
def test_message_and_hint_are_translated(rig: Rig, identity: str, fault: Callable[[Rig], object]) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("django_durable.checks.") and hasattr(module, "_"):
            rig.monkeypatch.setattr(module, "_", lambda text: f"«{text}»")
    fault(rig)
    (message,) = rig.messages()
    assert str(message.msg).startswith("«")
    assert str(message.hint).startswith("«")


def test_the_code_the_reference_and_these_tests_know_the_same_ids() -> None:
    declared = re.compile(r"durable\.[EWIC]\d{3}")
    in_code = {each for path in PACKAGE.rglob("*.py") for each in declared.findall(path.read_text("utf-8"))}
    headings = re.findall(r"^### `(durable\.\w+)`", REFERENCE.read_text("utf-8"), re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert in_code == set(headings) == {identity for identity, _, _ in FAULTS}
    assert set(declared.findall(REFERENCE.read_text("utf-8"))) == in_code


def test_the_check_command_reports_a_wrong_setting_instead_of_stopping_at_it(tmp_path: Path) -> None:
    code = f"""
import django
from django.conf import settings
settings.configure(
    SECRET_KEY="x",
    USE_TZ=True,
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django_durable"],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": {str(tmp_path / "db")!r},
                            "OPTIONS": {{"transaction_mode": "IMMEDIATE"}}}}}},
    DURABLE={{"LEASE": 3, "MAX_POSITIONS": 0}},
)
django.setup()
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "check"])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert re.findall(r"durable\.[EW]\d+", ran.stderr) == ["durable.E002", "durable.E004"]
    assert "Did you mean 'LEASE_SECONDS'?" in ran.stderr
    assert "Traceback" not in ran.stderr
