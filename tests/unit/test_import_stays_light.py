"""Installing the app costs a project nothing that it does not use: no extra imported, no query, no thread."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = {
    "celery",
    "kombu",
    "rest_framework",
    "drf_spectacular",
    "django_filters",
    "opentelemetry",
    "psycopg",
}

MINIMAL_PROJECT = """
import sys, threading
import django
from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

def refuse(self):
    raise AssertionError("a database connection was opened")

BaseDatabaseWrapper.connect = refuse
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django_durable"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)
django.setup()
"""
REPORT = """
print(threading.active_count())
print(*sorted({name.partition(".")[0] for name in sys.modules}), sep="\\n")
"""


def python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, *options, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def imported_by(statement: str) -> set[str]:
    """The modules that the statement imports, by the interpreter's own account."""
    lines = python(statement, "-X", "importtime").stderr.splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def test_importing_the_package_imports_no_extra_and_no_tables() -> None:
    modules = imported_by("import django_durable")
    assert "django_durable" in modules
    assert not modules & EXTRAS
    assert not modules & {"django_durable.models", "django.db.models"}


def test_importing_the_package_does_not_need_settings() -> None:
    python("import django_durable; from django.conf import settings; assert not settings.configured")


def test_setup_imports_no_extra_opens_no_connection_and_starts_no_thread() -> None:
    threads, *packages = python(MINIMAL_PROJECT + REPORT).stdout.split()
    assert "django_durable" in packages
    assert not set(packages) & EXTRAS
    assert threads == "1"


@pytest.mark.parametrize("extra", ["celery", "rest_framework", "psycopg", "django.db.models"])
def test_the_probe_would_see_an_import(extra: str) -> None:
    assert extra in imported_by(f"import {extra}")


def test_the_probe_would_see_a_query() -> None:
    query = MINIMAL_PROJECT + "from django.db import connection\nconnection.cursor()\n"
    done = subprocess.run([sys.executable, "-c", query], cwd=ROOT, capture_output=True, text=True)
    assert "AssertionError: a database connection was opened" in done.stderr


ASKS_SETTINGS = {"config", "read_settings", "encode", "encode_failure", "store_failure", "decode", "load_codecs"}


def called_at_import(tree: ast.AST) -> set[str]:
    """The names of the functions that run when the module is imported."""
    found: set[str] = set()
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(node.func.id)
        waiting += ast.iter_child_nodes(node)
    return found


def test_no_module_asks_settings_or_codecs_when_it_is_imported() -> None:
    for path in (ROOT / "django_durable").rglob("*.py"):
        found = called_at_import(ast.parse(path.read_text())) & ASKS_SETTINGS
        assert not found, f"{path.name} calls {found}"
