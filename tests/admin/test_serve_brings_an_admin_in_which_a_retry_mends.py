"""``make serve``: the admin, a worker and some executions come up with one command, and are gone after Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from django.db import connection

from tests.admin.html import Page
from tests.services.process import Process
from tests.services.project import Project
from tests.services.waiting import wait_until

BROUGHT_UP = "Ctrl-C stops the admin"
LINK = re.compile(r"/admin/django_durable/execution/[0-9a-f-]{36}/change/")


class Browser:
    """Cookies and forms, nothing else: what the pages need."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._jar = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._jar))

    def get(self, path: str) -> Page:
        with self._opener.open(self._address + path, timeout=30) as response:
            return Page(response.read().decode())

    def post(self, path: str, **fields: str) -> Page:
        token = next(cookie.value or "" for cookie in self._jar if cookie.name == "csrftoken")
        data = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token}).encode()
        with self._opener.open(self._address + path, data, timeout=30) as response:
            return Page(response.read().decode())

    def log_in(self, name: str, password: str) -> Page:
        self.get("/admin/login/")
        return self.post("/admin/login/", username=name, password=password, next="/admin/")

    def page_of(self, status: str) -> str:
        """The page of the first execution in that status."""
        page = self.get(f"/admin/django_durable/execution/?status__exact={status}")
        return next(link.partition("?")[0] for link in page.links() if LINK.match(link))

    def status(self, path: str) -> str:
        cells = self.get(path).cells
        return cells[cells.index("Status") + 1]


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found: int = free.getsockname()[1]
        return found


@pytest.fixture
def temp_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "temp"
    folder.mkdir()
    return folder


def start(project: Project, temp_folder: Path, port: int) -> Process:
    server = project.database.url if connection.vendor == "postgresql" else ""
    argv = [sys.executable, "-m", "testproject.serve", "--port", str(port)]
    return project.spawn(argv, name="serve", DATABASE_URL=server, TMPDIR=str(temp_folder))


@pytest.fixture
def served(project: Project, temp_folder: Path, port: int) -> Iterator[Process]:
    process = start(project, temp_folder, port)
    process.wait_for_output(BROUGHT_UP, within=90)
    yield process
    # Its children are in groups of their own: only it can stop them.
    if process.is_running:
        process.terminate()
        process.wait(within=60)


def password_of(process: Process, name: str) -> str:
    found = re.search(rf"^  {name} +(\S+)  may ", process.stdout, re.M)
    assert found, process.stdout
    return found[1]


def children_of(process: Process) -> list[int]:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in listed]


def databases_of(process: Process) -> int:
    """How many it has on the server that this run tests."""
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_database WHERE datname LIKE %s", [f"demo_{process.pid}_%"])
        (count,) = cursor.fetchone()
        return int(count)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_failed_execution_is_retried_in_the_admin_and_the_worker_completes_it(served: Process, port: int) -> None:
    browser = Browser(f"http://127.0.0.1:{port}")
    assert "Log out" in browser.log_in("operator", password_of(served, "operator")).text
    for status in ("completed", "waiting", "paused", "cancelled"):
        assert browser.status(browser.page_of(status)) == status
    failed = browser.page_of("failed")
    assert "FatalError" in browser.get(failed).text

    verb = failed.replace("/change/", "/retry/")
    assert verb in browser.get(failed).links()
    page = browser.post(verb, reason="the order is right now")
    assert len(page.messages()) == 1
    assert page.messages()[0].endswith("is retried.")
    wait_until(lambda: browser.status(failed) == "completed", within=60, because="the worker runs the retry")
    page = browser.get(failed)
    assert "the order is right now" in page.cells
    assert page.text.count("pay-") == 2, "charged once: the step's result, and what the workflow made of it"


def test_the_viewer_sees_no_values_and_no_verbs(served: Process, port: int) -> None:
    browser = Browser(f"http://127.0.0.1:{port}")
    browser.log_in("viewer", password_of(served, "viewer"))
    failed = browser.page_of("failed")
    page = browser.get(failed)
    assert "You may see its type and size only." in page.text
    verb = failed.replace("/change/", "/retry/")
    assert verb not in page.links()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        browser.post(verb, reason="let me")
    assert browser.status(failed) == "failed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_both_servers_and_leaves_nothing_behind(
    number: signal.Signals, served: Process, temp_folder: Path
) -> None:
    children = children_of(served)
    assert len(children) == 2
    assert list(temp_folder.iterdir()) != []
    assert databases_of(served) == (connection.vendor == "postgresql")
    os.kill(served.pid, number)
    assert served.wait(within=60) == 0, served.stderr
    assert all(map(is_gone, children))
    assert list(temp_folder.iterdir()) == []
    assert databases_of(served) == 0


@pytest.mark.parametrize("victim", [0, 1])
def test_it_ends_when_one_of_them_does(victim: int, served: Process) -> None:
    children = children_of(served)
    os.kill(children[victim], signal.SIGKILL)
    assert served.wait(within=60) == 1
    assert f"{['the worker', 'the admin'][victim]} ended by itself" in served.stderr
    assert all(map(is_gone, children))


def test_a_port_that_is_taken_is_told_before_anything_begins(project: Project, temp_folder: Path, port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        finished = start(project, temp_folder, port).finish(within=60)
    assert finished.code == 2
    assert f"Port {port} cannot be used" in finished.stderr
    assert "--port" in finished.stderr
    assert list(temp_folder.iterdir()) == []
