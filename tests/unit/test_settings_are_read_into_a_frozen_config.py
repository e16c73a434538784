"""``DURABLE`` becomes a frozen ``Config``: its defaults, its conversions, its cache, its purity."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_durable.conf import KINDS, Config, config, read
from django_durable.models import execution

# The table of the public contract, and NOTIFY, which PostgreSQL's idle workers may be woken by.
DEFAULTS = {
    "LEASE_SECONDS": 30,
    "POLL_SECONDS": 1.0,
    "NOTIFY": False,
    "TICK_SECONDS": 1.0,
    "WORKER_CONCURRENCY": 4,
    "WORKER_SHUTDOWN_SECONDS": 30,
    "MAX_RECOVERIES": 10,
    "MAX_CLAIM_FAILURES": 10,
    "MAX_PAYLOAD_BYTES": 1_048_576,
    "MAX_POSITIONS": 10_000,
    "INLINE_RETRY_SECONDS": 1.0,
    "BODY_QUERIES": "refuse",
    "SPINE": "default",
    "PLANES": {},
    "UNTENANTED": "control-plane",
    "CROSS_DATABASE_START": "refuse",
    "TENANT_RESOLVER": None,
    "DEFAULT_QUEUE": "durable",
    "DEFAULT_RETRY": None,
    "CODECS": (),
    "REDACT": (),
    "CALLBACK_BASE_URL": None,
    "EVENT_RETENTION": timedelta(days=7),
    "RETENTION": {},
    "AUTODISCOVER_MODULE": "workflows",
    "REST_PERMISSION_CLASSES": None,
    "REST_AUTHENTICATION_CLASSES": None,
    "REST_THROTTLE_CLASSES": None,
}


def test_the_defaults_are_those_of_the_contract() -> None:
    found, problems = read({})
    assert problems == []
    assert {key: getattr(found, key.lower()) for key in KINDS} == DEFAULTS
    assert found == Config()


def test_every_field_but_chosen_is_a_key_with_a_kind() -> None:
    assert set(Config.__dataclass_fields__) == {key.lower() for key in KINDS} | {"chosen"}


@pytest.mark.parametrize("key", KINDS)
def test_every_default_is_itself_an_accepted_value(key: str) -> None:
    default = getattr(Config(), key.lower())
    found, problems = read({key: default})
    assert problems == []
    assert getattr(found, key.lower()) == default


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("LEASE_SECONDS", timedelta(minutes=1), 60.0),
        ("LEASE_SECONDS", 0.5, 0.5),
        ("WORKER_SHUTDOWN_SECONDS", 0, 0.0),
        ("INLINE_RETRY_SECONDS", 0, 0.0),
        ("MAX_RECOVERIES", 0, 0),
        ("BODY_QUERIES", "warn", "warn"),
        ("PLANES", {"eu": "eu_db"}, {"eu": "eu_db"}),
        ("TENANT_RESOLVER", "shop.tenants.resolve", "shop.tenants.resolve"),
        ("CODECS", ["shop.codecs.zip"], ("shop.codecs.zip",)),
        ("REDACT", ["card_*", "*token*"], ("card_*", "*token*")),
        ("CALLBACK_BASE_URL", "https://shop.example/durable/", "https://shop.example/durable/"),
        ("EVENT_RETENTION", 3600, timedelta(hours=1)),
        ("AUTODISCOVER_MODULE", None, None),
        ("AUTODISCOVER_MODULE", "durable.flows", "durable.flows"),
        (
            "REST_PERMISSION_CLASSES",
            ["shop.rest.Staff", SimpleNamespace],
            ("shop.rest.Staff", SimpleNamespace),
        ),
        ("REST_THROTTLE_CLASSES", [], ()),
        ("DEFAULT_RETRY", {"max_attempts": 5}, {"max_attempts": 5}),
    ],
)
def test_a_value_is_converted_to_the_type_of_its_field(key: str, value: object, expected: object) -> None:
    found, problems = read({key: value})
    assert problems == []
    converted = getattr(found, key.lower())
    assert converted == expected
    assert isinstance(converted, type(expected)) or isinstance(expected, dict)


def test_an_object_as_default_retry_passes_through() -> None:
    retry = SimpleNamespace(max_attempts=2)
    assert read({"DEFAULT_RETRY": retry})[0].default_retry is retry


def test_the_shutdown_follows_the_lease_unless_it_is_set() -> None:
    assert read({"LEASE_SECONDS": 5})[0].worker_shutdown_seconds == 5.0
    assert read({"LEASE_SECONDS": 5, "WORKER_SHUTDOWN_SECONDS": 9})[0].worker_shutdown_seconds == 9.0


def test_an_unset_poll_is_never_longer_than_the_lease() -> None:
    found, problems = read({"LEASE_SECONDS": 0.5})
    assert (found.poll_seconds, problems) == (0.5, [])


def test_a_start_without_tenant_is_refused_once_a_plane_is_configured_unless_chosen_otherwise() -> None:
    assert read({"PLANES": {"eu": "eu_db"}})[0].untenanted == "refuse"
    chosen = read({"PLANES": {"eu": "eu_db"}, "UNTENANTED": "control-plane"})[0]
    assert chosen.untenanted == "control-plane"
    assert "UNTENANTED" in chosen.chosen
    assert "UNTENANTED" not in read({"PLANES": {"eu": "eu_db"}})[0].chosen


def test_retention_spells_out_the_star_and_leaves_out_for_ever() -> None:
    found = read({"RETENTION": {"*": timedelta(days=30), "failed": timedelta(days=90), "dead": None}})[0]
    month = timedelta(days=30)
    assert found.retention == {
        "completed": month,
        "continued": month,
        "cancelled": month,
        "timed_out": month,
        "failed": timedelta(days=90),
    }


def test_retention_takes_workflows_and_keeps_their_none() -> None:
    found = read({"RETENTION": {"shop.*": 60, "shop.audit": None, "completed": None}})[0]
    assert found.retention == {"shop.*": timedelta(minutes=1), "shop.audit": None}


def test_retention_knows_the_terminal_statuses_of_executions() -> None:
    assert set(read({"RETENTION": {"*": 1}})[0].retention) == set(execution.TERMINAL)


def test_the_config_and_its_mappings_cannot_be_changed() -> None:
    planes = {"eu": "eu_db"}
    found = read({"PLANES": planes})[0]
    planes["us"] = "us_db"
    assert found.planes == {"eu": "eu_db"}
    with pytest.raises(FrozenInstanceError):
        found.lease_seconds = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.planes["us"] = "us_db"  # type: ignore[index]
    with pytest.raises((AttributeError, TypeError)):
        found.surprise = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Config(30.0)  # type: ignore[misc]


def test_config_is_cached_and_override_settings_resets_it() -> None:
    with override_settings(DURABLE={"LEASE_SECONDS": 7}):
        first = config()
        assert first.lease_seconds == 7.0
        assert config() is first
        with override_settings(DURABLE={"LEASE_SECONDS": 8}):
            assert config().lease_seconds == 8.0
        assert config().lease_seconds == 7.0
        with override_settings(LANGUAGE_CODE="de"):
            assert config() is config()


def test_the_fixture_of_pytest_django_resets_it_too(settings: SimpleNamespace) -> None:
    settings.DURABLE = {"DEFAULT_QUEUE": "slow"}
    assert config().default_queue == "slow"
    settings.DURABLE = {}
    assert config().default_queue == "durable"


def test_a_wrong_setting_raises_improperly_configured_with_every_problem() -> None:
    wrong = override_settings(DURABLE={"LEASE": 1, "MAX_POSITIONS": "many", "SPINE": ""})
    with wrong, pytest.raises(ImproperlyConfigured) as info:
        config()
    text = str(info.value)
    assert "no key 'LEASE'" in text
    assert "DURABLE['MAX_POSITIONS'] is 'many' (str), but must be a whole number" in text
    assert "DURABLE['SPINE'] is '', but must be" in text


@pytest.fixture
def in_bare_process(tmp_path: object) -> Callable[[str], str]:
    """Run code in a process where settings are configured and the app registry is not ready."""

    def run(code: str) -> str:
        prologue = "from django.conf import settings; settings.configure(USE_I18N=True, DURABLE={'LEESE': 1}); "
        ran = subprocess.run(
            [sys.executable, "-c", prologue + code], capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    return run


def test_a_wrong_setting_is_told_before_the_apps_are_ready(in_bare_process: Callable[[str], str]) -> None:
    code = "\n".join(
        [
            "",
            "from django.core.exceptions import ImproperlyConfigured",
            "from django_durable.conf import config",
            "try: config()",
            "except ImproperlyConfigured as error: print(error)",
        ]
    )
    assert "no key 'LEESE'" in in_bare_process(code)


def test_reading_imports_neither_models_nor_celery_nor_project_code(
    in_bare_process: Callable[[str], str],
) -> None:
    code = "\n".join(
        [
            "",
            "import sys",
            "from django_durable.conf import read",
            "found, problems = read({'TENANT_RESOLVER': 'colorsys.rgb_to_hsv', 'CODECS': ['this.s']})",
            "assert problems == [], problems",
            "watched = ('colorsys', 'this', 'celery', 'django.db', 'django_durable.models')",
            "print([name for name in watched if name in sys.modules])",
        ]
    )
    assert in_bare_process(code) == "[]"
