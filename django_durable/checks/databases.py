"""The databases that hold the engine's tables: how they are opened, and (on request) what they are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Warning
from django.db import NotSupportedError, connections
from django.utils.translation import gettext as _

from django_durable.checks.project import engine_aliases, plane_aliases, requests_on_plane
from django_durable.conf import read_settings

OLDEST = {"sqlite": (3, 37), "postgresql": (14,)}
_VERSION_IDS = {"sqlite": "durable.E020", "postgresql": "durable.E021"}
_JOURNAL_MODE = re.compile(r"journal_mode\s*[=(]\s*['\"]?(\w+)", re.IGNORECASE)


def check_database_options(app_configs: object, **kwargs: Any) -> list[CheckMessage]:
    """What ``DATABASES`` says about the engine's databases; sends no query."""
    messages: list[CheckMessage] = []
    for alias in engine_aliases(read_settings()[0]):
        messages += _manual_commits(connections[alias])
        messages += _sqlite_options(connections[alias])
    for alias in plane_aliases(read_settings()[0]):
        messages += _unbounded_connect(connections[alias])
    return messages


def check_databases(app_configs: object, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """What the engine's databases say of themselves, as far as Django was asked to look at them."""
    messages: list[CheckMessage] = []
    for alias in engine_aliases(read_settings()[0]):
        if alias in (databases or ()):
            messages += _old_server(connections[alias])
            messages += _old_driver(connections[alias])
            messages += _rollback_journal(connections[alias])
    return messages


def check_new_plane(alias: str) -> list[CheckMessage]:
    """What is wrong with the options of a plane that no setting names; sends no query."""
    connection = connections[alias]
    return [
        *_manual_commits(connection),
        *_sqlite_options(connection),
        *_unbounded_connect(connection),
        *requests_on_plane(alias),
    ]


def _manual_commits(connection: Any) -> Iterator[CheckMessage]:
    if not connection.settings_dict["AUTOCOMMIT"]:
        yield Error(
            _("DATABASES[%(alias)r] has AUTOCOMMIT off: what a worker records would never be committed.")
            % {"alias": connection.alias},
            hint=_("Remove AUTOCOMMIT from DATABASES[%(alias)r].") % {"alias": connection.alias},
            id="durable.E012",
        )


def _sqlite_options(connection: Any) -> Iterator[CheckMessage]:
    if not _is_sqlite_file(connection):
        return
    mode = str(connection.settings_dict["OPTIONS"].get("transaction_mode") or "DEFERRED").upper()
    if mode not in ("IMMEDIATE", "EXCLUSIVE"):
        yield Warning(
            _("DATABASES[%(alias)r]: SQLite transactions are %(mode)s and take the write lock late.")
            % {"alias": connection.alias, "mode": mode},
            hint=_(
                "A transaction that reads before it writes can fail with 'database is locked', whatever the "
                "timeout; set OPTIONS['transaction_mode'] = 'IMMEDIATE'."
            ),
            id="durable.W021",
        )
    journal = _configured_journal_mode(connection)
    if journal not in (None, "wal"):
        yield _no_wal(connection.alias, journal)


def _unbounded_connect(connection: Any) -> Iterator[CheckMessage]:
    """A host that drops packets keeps a caller for minutes; a Unix socket answers at once, and so does a refusal."""
    settings = connection.settings_dict
    if connection.vendor != "postgresql" or settings["HOST"].startswith("/") or not settings["HOST"]:
        return
    if settings["OPTIONS"].get("connect_timeout") or os.environ.get("PGCONNECT_TIMEOUT"):
        return
    yield Warning(
        _("DATABASES[%(alias)r], a data plane, has no connect timeout.") % {"alias": connection.alias},
        hint=_(
            "While its host does not answer, each try to connect can hold up a worker for minutes; set "
            "OPTIONS['connect_timeout'] to a few seconds."
        ),
        id="durable.W022",
    )


def _rollback_journal(connection: Any) -> Iterator[CheckMessage]:
    # A mode that is configured and wrong is reported by the check that sends no query.
    if not _is_sqlite_file(connection) or _configured_journal_mode(connection) not in (None, "wal"):
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        journal = cursor.fetchone()[0]
    if journal != "wal":
        yield _no_wal(connection.alias, journal)


def _no_wal(alias: str, journal: str | None) -> CheckMessage:
    return Warning(
        _("DATABASES[%(alias)r]: in journal mode %(journal)s, SQLite's readers and writers block each other.")
        % {"alias": alias, "journal": journal},
        hint=_("Set OPTIONS['init_command'] = 'PRAGMA journal_mode=WAL'."),
        id="durable.W020",
    )


def _is_sqlite_file(connection: Any) -> bool:
    return connection.vendor == "sqlite" and not connection.is_in_memory_db()


def _configured_journal_mode(connection: Any) -> str | None:
    """The mode that ``init_command`` sets last, if it sets one."""
    modes = _JOURNAL_MODE.findall(connection.settings_dict["OPTIONS"].get("init_command") or "")
    return str(modes[-1]).lower() if modes else None


def _old_server(connection: Any) -> Iterator[CheckMessage]:
    oldest = OLDEST.get(connection.vendor)
    if oldest is None:
        return
    try:
        found = connection.get_database_version()
    except NotSupportedError as error:  # Django refuses what is older still, as soon as it connects
        what = str(error)
    else:
        if found >= oldest:
            return
        what = _("It is version %(found)s.") % {"found": ".".join(map(str, found))}
    name, least = connection.display_name, ".".join(map(str, oldest))
    yield Error(
        _("DATABASES[%(alias)r]: %(name)s is too old. %(what)s")
        % {"alias": connection.alias, "name": name, "what": what},
        hint=_("Durable executions need %(name)s %(least)s or later.") % {"name": name, "least": least},
        id=_VERSION_IDS[connection.vendor],
    )


def _old_driver(connection: Any) -> Iterator[CheckMessage]:
    if connection.vendor != "postgresql":
        return
    from django.db.backends.postgresql import psycopg_any  # cannot be imported without a driver

    if not psycopg_any.is_psycopg3:
        yield Error(
            _("DATABASES[%(alias)r] is opened with psycopg2.") % {"alias": connection.alias},
            hint=_("Install psycopg 3: the extra 'postgres' of this package brings it."),
            id="durable.E022",
        )
