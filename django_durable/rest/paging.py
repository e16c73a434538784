"""Page: some rows of every place that may be looked at, by their ids. Nothing is counted and nothing skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from typing import Any
from urllib.parse import quote, unquote

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from django_durable.errors import PlaneUnavailable
from django_durable.planes.places import Away, Place, ask
from django_durable.rest.problem import BadInput

__all__ = ["CURSOR", "LARGEST_PAGE", "PAGE", "SIZE", "Listing", "page_size"]

PAGE, LARGEST_PAGE = 50, 200
CURSOR, SIZE = "cursor", "page_size"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """How one kind of row is listed: in the order of ``id`` on each place, and of ``by`` between the places."""

    columns: tuple[str, ...]
    shown: type[serializers.Serializer[Any]]
    by: str = "id"
    descending: bool = True

    def page(
        self,
        request: Request,
        places: Sequence[Place],
        rows: Callable[[Place], QuerySet[Any, Any]],
        *,
        whole: bool,
        read: Callable[[Row], Row] = lambda row: row,
    ) -> Row:
        """One page as it is sent: ``next``, ``unavailable`` and ``results``. One query a place.

        ``whole``: for an operator of the whole installation, who is told the plane of each row and the planes that
        gave no answer. For anybody else that is ``PlaneUnavailable``. ``read`` makes of a row what is shown of it.
        """
        size = page_size(request)
        positions = self._read(request, places, rows)
        answers = ask(places, partial(self._of, rows=rows, positions=positions, size=size))
        if answers.away and not whole:
            raise PlaneUnavailable
        # Each place's rows stay in the order of their ids, which its next page goes on from.
        found = list(
            merge(*(one for _place, one in answers.found), key=lambda row: row[self.by], reverse=self.descending)
        )
        page = found[:size]
        following = self._write(places, positions, page) if len(found) > size else None
        for row in page:
            label = row.pop("place")
            if whole:
                row["plane"] = label
        return envelope(request, self.shown([read(row) for row in page], many=True).data, following, answers.away)

    def _of(
        self,
        place: Place,
        *,
        rows: Callable[[Place], QuerySet[Any, Any]],
        positions: Mapping[str, Any],
        size: int,
    ) -> list[Row]:
        chosen = rows(place)
        after = positions.get(place.label, positions.get(""))
        if after is not None:
            chosen = chosen.filter(**{"pk__lt" if self.descending else "pk__gt": after})
        ordered = chosen.order_by("-pk" if self.descending else "pk").values(*self.columns)
        return [{**row, "place": place.label} for row in ordered[: size + 1]]

    def _read(
        self, request: Request, places: Sequence[Place], rows: Callable[[Place], QuerySet[Any, Any]]
    ) -> dict[str, Any]:
        """Where each place's page begins: an id, or ``north:12,south:40`` with names quoted as in an address."""
        text = request.query_params.get(CURSOR)
        if not text:
            return {}
        field = rows(places[0]).model._meta.pk
        assert field is not None
        positions: dict[str, Any] = {}
        for part in text.split(","):
            name, colon, id_text = part.rpartition(":")
            try:
                position = field.to_python(id_text)
                field.run_validators(position)
            except (ValidationError, OverflowError, ValueError):
                raise wrong_cursor() from None
            positions[unquote(name) if colon else ""] = position
        return positions

    @staticmethod
    def _write(places: Sequence[Place], before: Mapping[str, Any], page: Sequence[Row]) -> str:
        """The last row shown of each place."""
        if len(places) == 1:
            return str(page[-1]["id"])
        last = {**before, **{row["place"]: row["id"] for row in page}}
        return ",".join(f"{quote(name, safe='')}:{position}" for name, position in last.items())


def envelope(request: Request, rows: Iterable[Row], following: str | None, away: Sequence[Away] = ()) -> Row:
    """A page as it is sent."""
    address = None
    if following is not None:
        address = replace_query_param(request.build_absolute_uri(), CURSOR, following)
    return {"next": address, "unavailable": [one.place.label for one in away], "results": list(rows)}


def page_size(request: Request) -> int:
    """``?page_size=``. Raises ``BadInput``."""
    text = request.query_params.get(SIZE)
    if text is None:
        return PAGE
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= LARGEST_PAGE):
        raise BadInput({SIZE: [f"must be from 1 to {LARGEST_PAGE}"]})
    return int(text)


def wrong_cursor() -> BadInput:
    """The error for a cursor that no page has given out."""
    return BadInput({CURSOR: ["is none that a page has given out"]})
