"""Dossier: everything that the page of one execution shows, read with a fixed number of queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import F
from django.utils.translation import gettext as _

from django_durable.admin.checkpoints import CheckpointRow, read_checkpoints
from django_durable.admin.columns import error_start, execution_link, moment, status_badge, type_in
from django_durable.admin.paging import Page
from django_durable.admin.reader import Failure, Reader, Shown
from django_durable.admin.stored import read_stored, with_stored
from django_durable.admin.timeline import Timeline, draw
from django_durable.models import DeadLetter, DispatchHint, Execution, Join, Message, OperatorNote
from django_durable.operators.adopt import has_other_source
from django_durable.planes.selection import spine_alias

__all__ = ["Dossier", "Table", "open_dossier"]

MOST: Final = 100
"""Rows of a table that is not paged; it says so where there are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One section: its headings and its rows. A cell is text, ready mark-up, or a ``Shown``."""

    title: str
    heads: list[str]
    rows: list[list[Any]]
    is_cut: bool = False
    """Whether there are more rows than these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """One execution, as one user may see it."""

    mark: str
    """What changes whenever something has happened."""
    facts: list[tuple[str, Any]]
    input: Shown | None
    output: Shown | None
    failure: Failure | None
    checkpoints: Page[CheckpointRow]
    timeline: Timeline | None
    tables: list[Table]


def open_dossier(execution: Execution[Any], asked: Mapping[str, str], reader: Reader, site: str) -> Dossier:
    """Read everything; ``asked`` says which page of the history. Raises ``WrongCursor``."""
    tables = [
        _messages(execution, reader),
        _takeovers(execution),
        _hints(execution),
        _dead_letters(execution),
        _notes(execution),
        _children(execution, site),
        _joins(execution),
    ]
    checkpoints = read_checkpoints(execution, asked, reader)
    return Dossier(
        mark=f"{execution.revision}-{execution.status}-{len(checkpoints.rows)}",
        facts=[(label, cell) for label, cell in _facts(execution, site) if cell not in (None, "")],
        input=reader.value(execution.encoded_input),
        output=reader.value(execution.encoded_output),
        failure=reader.failure(execution.encoded_error, status=execution.status),
        checkpoints=checkpoints,
        timeline=draw(execution, [row.span for row in checkpoints.rows]),
        tables=[table for table in tables if table.rows],
    )


def _facts(execution: Execution[Any], site: str) -> Iterator[tuple[str, Any]]:
    yield _("Id"), execution.pk
    yield _("Status"), status_badge(execution.status)
    yield _("Workflow"), execution.workflow
    yield _("Version"), execution.version
    yield _("Source"), _source(execution)
    yield _("Key"), execution.key
    yield _("Run"), execution.run if execution.key is not None else None
    yield _("Tenant"), execution.tenant
    yield _("Tags"), ", ".join(f"{name}={tag}" for name, tag in _pairs(execution.tags))
    yield _("Correlation id"), execution.correlation_id
    yield _("Created"), moment(execution.created_at)
    yield _("Not before"), moment(execution.run_after)
    yield _("Scheduled for"), moment(execution.scheduled_for)
    yield _("Started"), moment(execution.started_at)
    yield _("Finished"), moment(execution.finished_at)
    yield _("Wakes"), moment(execution.wake_at)
    yield _("Waits for"), ", ".join(map(str, _listed(execution.awaiting)))
    yield _("Deadline"), moment(execution.deadline)
    yield _("Pause requested"), moment(execution.pause_requested_at)
    yield _("Cancel requested"), moment(execution.cancel_requested_at)
    yield _("Ends as"), execution.ending_as if not execution.is_terminal else None
    yield _("Queue"), execution.queue
    yield _("Priority"), execution.priority
    yield _("Worker"), execution.worker
    yield _("Claimed"), moment(execution.claimed_at)
    yield _("Recoveries"), execution.recoveries
    yield _("Revision"), execution.revision
    yield _("Epoch"), execution.epoch
    relatives = (
        (_("Parent"), execution.parent_id),
        (_("Root"), execution.root_id if execution.root_id != execution.pk else None),
        (_("Successor"), execution.successor_id),
        (_("Forked from"), execution.forked_from),
    )
    for label, relative in relatives:
        yield label, execution_link(relative, site) if relative is not None else None


def _source(execution: Execution[Any]) -> str | None:
    """Said only where the code here is not what a live run was started with."""
    changed = not execution.is_terminal and has_other_source(execution)
    return _("changed since its start") if changed else None


def _messages(execution: Execution[Any], reader: Reader) -> Table:
    rows = Message.objects.using(execution.using).filter(execution_id=execution.pk).defer("payload")
    # Unread ones first, then what was taken last.
    ordered = with_stored(rows, "payload").order_by(F("consumed_by").desc(nulls_first=True), "-id")[: MOST + 1]
    found = [
        [
            row.channel,
            moment(row.accepted_at),
            _("unread") if row.consumed_by is None else row.consumed_by,
            read_stored(row, "payload", reader),
        ]
        for row in ordered
    ]
    heads = [_("Channel"), _("Accepted"), _("Taken by position"), _("Payload")]
    return _table(_("Messages"), heads, found)


def _takeovers(execution: Execution[Any]) -> Table:
    entries = [entry for entry in _listed(execution.takeovers) if isinstance(entry, dict)]
    found = [[entry.get(name) for name in ("worker", "start", "end", "reason")] for entry in entries]
    return _table(_("Take-overs"), [_("Worker"), _("From"), _("To"), _("Reason")], found)


def _hints(execution: Execution[Any]) -> Table:
    rows = DispatchHint.objects.using(spine_alias()).filter(execution_id=execution.pk)
    found = [
        [
            moment(row.due_at),
            _("leased") if row.token is not None else DispatchHint.State(row.state).label,
            row.owner,
            row.queue,
            row.position if row.position >= 0 else "",
            row.failures,
            row.category,
        ]
        for row in rows.order_by("due_at")[: MOST + 1]
    ]
    heads = [
        _("Due, or leased until"),
        _("State"),
        _("Worker"),
        _("Queue"),
        _("Position"),
        _("Failures"),
        _("Category"),
    ]
    return _table(_("Dispatch"), heads, found)


def _dead_letters(execution: Execution[Any]) -> Table:
    rows = DeadLetter.objects.using(execution.using).filter(execution_id=execution.pk)
    begun = rows.annotate(error_start=error_start()).defer("encoded_error", "failures")
    letters = begun.order_by("-generation")[: MOST + 1]
    found = [
        [
            letter.generation,
            status_badge(letter.status),
            None if letter.error_start is None else type_in(letter.error_start),
            letter.recoveries,
            moment(letter.created_at),
            moment(letter.retried_at) or _("open"),
            letter.retried_by,
        ]
        for letter in letters
    ]
    heads = [
        _("Generation"),
        _("Ended as"),
        _("Error"),
        _("Recoveries"),
        _("Created"),
        _("Retried"),
        _("By"),
    ]
    return _table(_("Dead letters"), heads, found)


def _notes(execution: Execution[Any]) -> Table:
    rows = OperatorNote.objects.using(execution.using).filter(execution_id=execution.pk)
    found = [[moment(row.at), row.verb, row.actor, row.reason] for row in rows.order_by("-at", "-id")[: MOST + 1]]
    return _table(_("Operators"), [_("At"), _("Verb"), _("Who"), _("Why")], found)


def _children(execution: Execution[Any], site: str) -> Table:
    rows = Execution.objects.using(execution.using).filter(parent_id=execution.pk)
    named = rows.only("id", "workflow", "key", "status", "parent_position").order_by("id")[: MOST + 1]
    found = [
        [execution_link(row.pk, site), row.workflow, row.key, status_badge(row.status), row.parent_position]
        for row in named
    ]
    return _table(_("Children"), [_("Id"), _("Workflow"), _("Key"), _("Status"), _("Position")], found)


def _joins(execution: Execution[Any]) -> Table:
    rows = Join.objects.using(execution.using).filter(execution_id=execution.pk).order_by("position")[: MOST + 1]
    found = [[row.position, row.needs, row.settled, row.failed, row.in_flight, row.tolerated] for row in rows]
    heads = [_("Position"), _("Needs"), _("Settled"), _("Failed"), _("In flight"), _("Failures tolerated")]
    return _table(_("Fan-outs"), heads, found)


def _table(title: str, heads: list[str], rows: list[list[Any]]) -> Table:
    return Table(title=title, heads=heads, rows=rows[:MOST], is_cut=len(rows) > MOST)


def _listed(text: str) -> list[Any]:
    """A JSON list in a column; empty for anything else."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _pairs(tags: Any) -> list[tuple[str, Any]]:
    return sorted(tags.items()) if isinstance(tags, dict) else []
