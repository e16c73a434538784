"""A live project on PostgreSQL, and Chromium in front of it. ``make test-browser`` runs this tier, nothing else does.

Imported before the settings are chosen, so it imports nothing that reads them.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.services.project import Project

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PASSWORD = "for-these-tests-only"
PICTURES = Path(os.environ.get("BROWSER_PICTURES", "build/browser"))

# Playwright has an event loop in this thread; the tests' own queries run beside it.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

VIEWS = ("view_execution", "view_deadletter", "view_dispatchhint", "view_operatoraction")
GRANTS = {
    "viewer": VIEWS,
    "operator": (*VIEWS, "view_payload", "retry_execution", "cancel_execution", "pause_execution"),
}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests; each has a context, and so cookies, of its own."""
    from playwright.sync_api import sync_playwright

    if os.environ.get("TEST_DB") != "postgres":
        raise pytest.UsageError("tests/browser is for PostgreSQL: make test-browser")
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        raise pytest.UsageError("Chromium is missing: apt-get install chromium, or set CHROMIUM to its path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def address(project: Project) -> str:
    """The project's server, with a worker beside it."""
    from django.contrib.auth import get_user_model

    from tests.services.waiting import wait_until

    make_users(get_user_model())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    project.manage("durable", "worker")
    project.manage("runserver", "--noreload", "--skip-checks", "--insecure", f"127.0.0.1:{port}")

    def answers() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            return False
        return True

    wait_until(answers, within=60, because="the server starts")
    return f"http://127.0.0.1:{port}"


def make_users(model: Any) -> None:
    from django.contrib.auth.models import Permission

    model.objects.create_superuser("administrator", password=PASSWORD)
    for name, granted in GRANTS.items():
        user = model.objects.create_user(name, password=PASSWORD, is_staff=True)
        user.user_permissions.set(
            Permission.objects.filter(content_type__app_label="django_durable", codename__in=granted)
        )


@pytest.fixture
def enter(chromium: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """``enter("operator")``: a window of somebody who has logged in; ``dark=True`` for the dark theme."""
    contexts = []

    def enter(who: str, *, dark: bool = False, **options: Any) -> Page:
        scheme = "dark" if dark else "light"
        context = chromium.new_context(
            base_url=address, color_scheme=scheme, viewport={"width": 1280, "height": 900}, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.goto("/admin/login/?next=/admin/django_durable/execution/")
        page.fill("#id_username", who)
        page.fill("#id_password", PASSWORD)
        page.click("input[type=submit]")
        page.wait_for_url("**/execution/**")
        return page

    yield enter
    for context in contexts:
        context.close()


@pytest.fixture
def picture() -> Callable[[Page, str], None]:
    """Keep what a window shows: build output, to be looked at."""
    PICTURES.mkdir(parents=True, exist_ok=True)

    def picture(page: Page, name: str) -> None:
        page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    return picture
