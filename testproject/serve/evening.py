"""An evening at the shop: prepare the database, run the servers, stay until somebody presses Ctrl-C."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from urllib.parse import urlsplit

from django.core.management import call_command

from testproject.demo.stage import StageError
from testproject.serve.logins import Login, create_logins
from testproject.serve.scenes import Scene, play_scenes
from testproject.serve.servers import Servers

__all__ = ["spend"]

HOST = "127.0.0.1"


def spend(port: int) -> int:
    """Serve until interrupted; 1 where a server ended by itself. Raises ``StageError``."""
    _check_port(port)
    print("Preparing a database with some executions …", flush=True)
    call_command("migrate", verbosity=0)
    logins = create_logins()
    scenes = play_scenes()
    with Servers(HOST, port) as servers:
        servers.wait_until_up()
        print(_welcome(port, logins, scenes), flush=True)
        ended = servers.wait()
    print(f"{ended} ended by itself.", file=sys.stderr)
    return 1


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            raise StageError(
                f"Port {port} cannot be used ({error}); take another: make serve ARGS='--port 8001'."
            ) from error


def _database() -> str:
    """What leads another process to the same database. A password of the server's is not shown."""
    name = "DATABASE_URL" if os.environ.get("DATABASE_URL") else "SQLITE_PATH"
    text = os.environ[name]
    if name == "DATABASE_URL" and (password := urlsplit(text).password):
        text = text.replace(f":{password}@", ":********@", 1)
    return f"{name}={shlex.quote(text)}"


def _welcome(port: int, logins: list[Login], scenes: list[Scene]) -> str:
    width = max(len(login.name) for login in logins)
    return "\n".join(
        [
            "",
            f"  http://{HOST}:{port}/admin/django_durable/execution/",
            "",
            *[f"  {login.name.ljust(width)}  {login.password}  {login.what}" for login in logins],
            "",
            *[f"  {scene.key}  {scene.status.ljust(9)}  {scene.story}" for scene in scenes],
            "",
            f"  From another terminal: {_database()} python manage.py durable list",
            "  Ctrl-C stops the admin and the worker and removes the database.",
            "",
        ]
    )
