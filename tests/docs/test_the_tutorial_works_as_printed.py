"""The tutorial, in a project that is made for it: every file, command and output that the page prints."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from testproject.databases import from_url
from tests.docs.tutorial import Tutorial
from tests.services.backend import shared_postgres
from tests.services.databases import ROOT

PAGE = ROOT / "docs" / "tutorial" / "first-workflow.md"
DISTRIBUTION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]


@pytest.fixture
def reader_env() -> dict[str, str]:
    """The environment of somebody who has installed the package and nothing of this repository."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV")
    inherited = {name: os.environ[name] for name in kept if name in os.environ}
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**inherited, "PYTHONPATH": os.pathsep.join(path for path in paths if path), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def database() -> Iterator[Mapping[str, object] | None]:
    """The database of an existing project, empty; ``None`` for the one that a new project has."""
    if os.environ["TEST_DB"] == "sqlite":
        yield None
        return
    server, name = shared_postgres(), f"tutorial_{os.getpid()}"
    yield from_url(server.create_database(name))
    server.drop_database(name)
    server.drop_database(f"test_{name}")


def settings_of_an_existing_project(folder: Path, database: Mapping[str, object]) -> Callable[[str], None]:
    """Give the project its own database as soon as it is there."""

    def configure(command: str) -> None:
        if command.startswith("django-admin startproject"):
            with (folder / "mysite" / "mysite" / "settings.py").open("a") as settings:
                settings.write(f"\nDATABASES = {{'default': {dict(database)!r}}}\n")

    return configure


def test_the_tutorial_works_as_printed(
    tmp_path: Path, reader_env: dict[str, str], database: Mapping[str, object] | None
) -> None:
    tutorial = Tutorial(PAGE, tmp_path, reader_env, DISTRIBUTION)
    if database is not None:
        tutorial.with_sqlite = False
        tutorial.after_command = settings_of_an_existing_project(tmp_path, database)
    tutorial.play()
    assert len(tutorial.workers) == 2
    assert tutorial.typed[0] == "python -m pip install Django"
    assert any(command.startswith("kill -9") for command in tutorial.typed)


PLAYED = """\
```console
$ django-admin version
{version}
```
"""


def test_another_output_than_printed_is_noticed(tmp_path: Path, reader_env: dict[str, str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(PLAYED.format(version="1.0"))
    with pytest.raises(AssertionError, match=r"'1\.0' is not what comes"):
        Tutorial(page, tmp_path, reader_env, DISTRIBUTION).play()
    page.write_text(PLAYED.format(version="...\n"))
    with pytest.raises(AssertionError, match="is not what comes"):
        Tutorial(page, tmp_path, reader_env, DISTRIBUTION).play()
    page.write_text(PLAYED.format(version="..."))
    Tutorial(page, tmp_path, reader_env, DISTRIBUTION).play()


def test_an_install_of_another_package_is_noticed(tmp_path: Path, reader_env: dict[str, str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ python -m pip install django-durable\n```\n")
    with pytest.raises(AssertionError, match="django-durable"):
        Tutorial(page, tmp_path, reader_env, DISTRIBUTION).play()


def test_an_id_must_be_the_same_wherever_the_page_prints_the_same(tmp_path: Path, reader_env: dict[str, str]) -> None:
    first, second = "0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071", "0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6072"
    command = "python -c \"print('process 7, id {0}, in 0.5 s')\""
    page = tmp_path / "page.md"
    printed = f"process 5, id {first}, in 1.25 s"
    page.write_text(
        f"```console\n$ {command.format(second)}\n{printed}\n$ {command.format(second)}\n{printed}\n```\n"
    )
    Tutorial(page, tmp_path, reader_env, DISTRIBUTION).play()
    page.write_text(
        f"```console\n$ {command.format(second)}\n{printed}\n"
        f"$ {command.format(second.replace('72', '73'))}\n{printed}\n```\n"
    )
    with pytest.raises(AssertionError, match="is not what comes"):
        Tutorial(page, tmp_path, reader_env, DISTRIBUTION).play()
