"""prune: remove what has ended and been kept for long enough, whole trees, a bounded transaction at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Count, Model, QuerySet, Sum, TextField
from django.db.models.functions import Coalesce, Length

from django_durable.clock import read_now
from django_durable.engine.retention import Position, Terms, ended_pages
from django_durable.engine.transitions.prune import BELONGINGS, choose, named, packed, pieces, remove_remains
from django_durable.engine.transitions.prune import prune as prune_trees
from django_durable.models import Execution
from django_durable.operators.actors import attribution
from django_durable.operators.audit import note_action
from django_durable.planes.places import Answers, Place, all_places, ask

__all__ = ["Pruned", "prune", "prune_place"]


@dataclass(slots=True)
class Pruned:
    """What went, or would go."""

    trees: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    """By table; the executions among them."""
    bytes: int | None = None
    """Of the stored texts, before the database compresses them; only a dry run asks."""
    kept: Counter[str] = field(default_factory=Counter)
    """Trees that are old enough and stay, by the reason."""
    position: Position | None = None
    """Where the next pass goes on; ``None``: at the beginning."""

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        executions = self.rows[named(Execution)]
        rows = {name: count for name, count in sorted(self.rows.items()) if name != named(Execution)}
        return {
            "trees": self.trees,
            "executions": executions,
            "rows": rows,
            "bytes": self.bytes,
            "kept": dict(sorted(self.kept.items())),
        }


def prune(
    *,
    actor: Any,
    terms: Terms,
    places: Sequence[Place] | None = None,
    dry_run: bool = False,
    limit: int | None = None,
) -> Answers[Pruned]:
    """Remove the trees that these terms let go, on every place, at most ``limit`` of them; what each place says.

    One row on the spine says who did it, before anything goes. ``dry_run`` only counts. A plane that gives no answer
    keeps nobody waiting, and is gone on with by the next run. Raises ``ValueError`` for an empty actor.
    """
    by = attribution(actor, "", required=not dry_run)
    if not dry_run:
        note_action("prune", by.actor)
    left = [limit]

    def question(place: Place) -> Pruned:
        pruned = prune_place(place.alias, terms, dry_run=dry_run, limit=left[0])
        if left[0] is not None:
            left[0] -= pruned.trees
        return pruned

    return ask(all_places() if places is None else places, question)


def prune_place(
    using: str,
    terms: Terms,
    *,
    dry_run: bool = False,
    limit: int | None = None,
    after: Position | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Pruned:
    """Go through what has ended on one plane, the oldest first, until the end, the limit, or ``stop`` says so."""
    pruned = Pruned(bytes=0 if dry_run else None)
    if not dry_run:
        _remove_remains(using, pruned, stop)
    now = read_now(using)
    for page in ended_pages(using, terms, now, after):
        wanted = [one for one in page if one.is_root and terms.wants(one, now)]
        if limit is not None and limit - pruned.trees <= len(wanted):
            wanted = wanted[: max(0, limit - pruned.trees)]
        for portion in packed(using, wanted):
            choice = choose(using, portion, terms, now) if dry_run else prune_trees(using, portion, terms)
            pruned.trees += len(choice.roots)
            pruned.kept += choice.kept
            pruned.rows[named(Execution)] += len(choice.members)
            if dry_run:
                _measure(using, choice.members, pruned)
            else:
                _remove_remains(using, pruned, stop)
        pruned.position = (page[-1].finished_at, page[-1].id)
        if stop() or (limit is not None and pruned.trees >= limit):
            return pruned
    pruned.position = None
    return pruned


def _remove_remains(using: str, pruned: Pruned, stop: Callable[[], bool]) -> None:
    while (removed := remove_remains(using)) is not None:
        pruned.rows += removed
        if stop():
            return


def _measure(using: str, members: Sequence[UUID], pruned: Pruned) -> None:
    """Count the rows that would go with these executions, and the bytes of their texts."""
    assert pruned.bytes is not None
    for ids in pieces(members):
        tables: tuple[type[Model], ...] = (Execution, *BELONGINGS)
        for model in tables:
            column = "pk" if model is Execution else "execution_id"
            count, size = _sum(model._base_manager.using(using).filter(**{f"{column}__in": ids}))
            pruned.bytes += size
            if model is not Execution:
                pruned.rows[named(model)] += count


def _sum(rows: QuerySet[Any]) -> tuple[int, int]:
    """How many rows, and how long their texts are. Values are stored as ASCII: a character is a byte."""
    names = [f.attname for f in rows.model._meta.concrete_fields if isinstance(f, TextField)]
    texts = {f"text_{number}": Coalesce(Sum(Length(name)), 0) for number, name in enumerate(names)}
    found: dict[str, int] = rows.order_by().aggregate(number_of=Count("*"), **texts)
    return found.pop("number_of"), sum(found.values())
