"""JSON from REST and the command line becomes what the workflow's annotations ask for, or is refused by name."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    NewType,
    NotRequired,
    Protocol,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID

import pytest
from django.contrib.auth.models import Group

from django_durable.payloads import Ref, UnfitArgument, coerce_arguments, register_value, to_plain
from tests.unit.exactness import identical

if TYPE_CHECKING:
    from nowhere import Missing

T = TypeVar("T")
OrderId = NewType("OrderId", int)


class Colour(Enum):
    RED = "red"
    PAIR = (1, Decimal("2.5"))

    @classmethod
    def _missing_(cls, value: object) -> Colour | None:
        return cls.RED if value == "rot" else None


class Level(IntEnum):
    LOW = 1


class Rights(Flag):
    READ = 1
    WRITE = 2


@dataclass
class Money:
    amount: Decimal
    currency: str = "EUR"
    seen: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise ValueError("S3CRET is negative")


@dataclass
class Seeded:
    base: int
    seed: InitVar[Decimal]

    def __post_init__(self, seed: Decimal) -> None:
        self.base += int(seed)


@dataclass
class Box(Generic[T]):
    inside: list[T]


class Line(TypedDict):
    sku: str
    price: NotRequired[Decimal]


class Closeable(Protocol):
    def close(self) -> None: ...


class Point:
    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)

    __hash__ = None  # type: ignore[assignment]


register_value(Point, lambda point: [point.x, point.y], lambda pair: Point(*pair), "test.Point")


def coerce(hint: Any, value: Any) -> Any:
    def func(ctx: Any, x: Any) -> None: ...

    func.__annotations__ = {"ctx": Any, "x": hint, "return": None}
    return coerce_arguments(func, {"x": value})["x"]


UTC_NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hint", "value", "made"),
    [
        (Any, {"a": [1]}, {"a": [1]}),
        (object, 1, 1),
        (T, 1, 1),
        (None, None, None),
        (bool, True, True),
        (int, 10**30, 10**30),
        (OrderId, 5, 5),
        (Annotated[int, "positive"], 5, 5),
        (float, 1, 1.0),
        (float, "Infinity", math.inf),
        (str, "5", "5"),
        (Decimal, "12.50", Decimal("12.50")),
        (Decimal, 12, Decimal(12)),
        (Decimal, 12.1, Decimal("12.1")),
        (UUID, "00000000-0000-0000-0000-000000000001", UUID(int=1)),
        (datetime, "2024-01-01T12:00:00Z", UTC_NOON),
        (datetime, "2024-01-01T12:00:00", datetime(2024, 1, 1, 12)),
        (date, "2024-02-29", date(2024, 2, 29)),
        (time, "12:30", time(12, 30)),
        (timedelta, 90, timedelta(seconds=90)),
        (timedelta, 0.5, timedelta(seconds=0.5)),
        (timedelta, "P2DT1H", timedelta(days=2, hours=1)),
        (timedelta, "-P0DT00H00M01.500000S", timedelta(seconds=-1.5)),
        (bytes, "AP8=", b"\x00\xff"),
        (Colour, "red", Colour.RED),
        (Colour, "rot", Colour.RED),
        (Colour, [1, "2.5"], Colour.PAIR),
        (Level, 1, Level.LOW),
        (Rights, 3, Rights.READ | Rights.WRITE),
        (Literal["a", 1, Colour.RED], "a", "a"),
        (Literal["a", 1, Colour.RED], "red", Colour.RED),
        (list[Decimal], ["1", 2], [Decimal(1), Decimal(2)]),
        (list, [1], [1]),
        (Sequence[date], ["2024-02-29"], [date(2024, 2, 29)]),
        (Iterable[int], [1], [1]),
        (Collection[int], [1], [1]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, Decimal], [1, "2"], (1, Decimal(2))),
        (tuple, [1], (1,)),
        (set[UUID], ["00000000-0000-0000-0000-000000000001"], {UUID(int=1)}),
        (frozenset[int], [1], frozenset({1})),
        (AbstractSet[int], [1], {1}),
        (dict[str, Decimal], {"a": "1"}, {"a": Decimal(1)}),
        (dict[int, list[date]], {"1": ["2024-02-29"]}, {1: [date(2024, 2, 29)]}),
        (dict[Level, int], {"1": 2}, {Level.LOW: 2}),
        (dict[UUID, int], {"00000000-0000-0000-0000-000000000001": 2}, {UUID(int=1): 2}),
        (dict[bool, int], {"true": 1}, {True: 1}),
        (dict[tuple[int, str], int], {'[1, "x"]': 1}, {(1, "x"): 1}),
        (dict[int | str, int], {"1": 2, "a": 3}, {"1": 2, "a": 3}),
        (Mapping[str, Any], {"a": {}}, {"a": {}}),
        (dict, {"a": 1}, {"a": 1}),
        (Decimal | None, None, None),
        (Decimal | None, "1", Decimal(1)),
        (Union["int", "str"], "1", "1"),
        (Decimal | str, "1", "1"),
        (date | datetime, "2024-01-01T12:00:00Z", UTC_NOON),
        (int | Decimal, "1", Decimal(1)),
        (list[int] | list[Decimal], ["1"], [Decimal(1)]),
        (list[Decimal] | list[str], ["1"], ["1"]),
        (dict[str, Decimal] | dict[str, str], {"a": "1"}, {"a": "1"}),
        (Money, {"amount": "1.50"}, Money(Decimal("1.50"))),
        (Seeded, {"base": 1, "seed": "2"}, Seeded(1, Decimal(2))),
        (Box[Decimal], {"inside": ["1"]}, Box([Decimal(1)])),
        (Box, {"inside": ["1"]}, Box(["1"])),
        (list[Money | None], [None, {"amount": 1}], [None, Money(Decimal(1))]),
        (Line, {"sku": "a", "price": "1"}, {"sku": "a", "price": Decimal(1)}),
        (Line, {"sku": "a"}, {"sku": "a"}),
        (Ref[Group], 5, Ref.to(Group, 5)),
        (Ref[Group], "5", Ref.to(Group, 5)),
        (Ref[Group], {"model": "auth.Group", "pk": 5}, Ref.to(Group, 5)),
        (Ref, {"model": "auth.Group", "pk": 5}, Ref.to(Group, 5)),
        (Point, [1, 2], Point(1, 2)),
        (Closeable, {"a": 1}, {"a": 1}),
        ("Nonsense[", 1, 1),
        ("Missing", 1, 1),
    ],
)
def test_json_becomes_what_the_annotation_asks_for(hint: Any, value: Any, made: Any) -> None:
    assert identical(coerce(hint, value), made)


@pytest.mark.parametrize(
    ("hint", "value", "path", "told"),
    [
        (None, 1, "$", "expected null, got an integer"),
        (bool, 1, "$", "expected true or false, got an integer"),
        (int, True, "$", "expected an integer, got true or false"),
        (int, 1.0, "$", "expected an integer, got a number"),
        (int, "1", "$", "expected an integer, got a string"),
        (int, None, "$", "expected an integer, got null"),
        (float, "1.5", "$", "expected a number, got a string that is none"),
        (float, 10**400, "$", "expected a number, got an integer that is none"),
        (str, 1, "$", "expected a string"),
        (Decimal, "S3CRET", "$", "expected a decimal number as string or number, got a string that is none"),
        (Decimal, True, "$", "expected a decimal"),
        (UUID, "S3CRET", "$", "expected a UUID"),
        (datetime, "S3CRET", "$", "expected an ISO 8601 date and time"),
        (date, "2024-01-01T00:00", "$", "expected an ISO 8601 date"),
        (timedelta, "S3CRET", "$", "expected a duration"),
        (timedelta, 1e300, "$", "expected a duration"),
        (timedelta, math.nan, "$", "expected a duration"),
        (bytes, "S3CRET!", "$", "expected base64"),
        (Colour, "S3CRET", "$", "expected the value of a Colour"),
        (Level, True, "$", "expected the value of a Level"),
        (Level, "1", "$", "expected the value of a Level"),
        (Rights, 9, "$", "expected the value of a Rights"),
        (Literal["a", 1], True, "$", "expected one of the literals 'a', 1"),
        (list[Decimal], ["1", {"x": 1}], "$[1]", "got an object"),
        (list[int], "S3CRET", "$", "expected an array, got a string"),
        (list[int], {"S3CRET": 1}, "$", "expected an array, got an object"),
        (tuple[int, int], [1], "$", "an array of 2 items, got 1"),
        (set[int], [1, 1], "$", "without repetitions"),
        (set[list[int]], [[1]], "$", "members of a set"),
        (dict[str, int], [1], "$", "expected an object"),
        (dict[int, int], {"x": 1}, "$['x']", "expected an integer"),
        (dict[int, int], {"1": 1, " 1": 2}, "$[' 1']", "same as an earlier one"),
        (dict[str, list[int]], {"a": [1, "x"]}, "$['a'][1]", "expected an integer"),
        (dict[Any, list[Decimal]], {"a": [None]}, "$['a'][0]", "got null"),
        (list[int] | None, ["x"], "$[0]", "expected an integer"),
        (int | Decimal, "x", "$", "expected one of int, Decimal, got a string"),
        (Money, {"amount": "x"}, "$['amount']", "decimal number"),
        (Money, {"amount": 1, "S3CRET"[:2]: 1}, "$['S3']", "Money has no field of this name"),
        (Money, {"amount": 1, "seen": 1}, "$['seen']", "no field of this name"),
        (Money, {}, "$", "missing a required argument: 'amount'"),
        (Money, {"amount": -1}, "$", "Money refuses the object: ValueError"),
        (Money, [1], "$", "expected an object, got an array"),
        (Line, {"price": "1"}, "$", "lacks 'sku'"),
        (Line, {"sku": "a", "x": 1}, "$['x']", "no field"),
        (Ref[Group], None, "$", "a primary key of auth.Group"),
        (Ref[Group], "S3CRET", "$", "a primary key of auth.Group, got a string that is none"),
        (Ref[Group], {"model": "auth.Permission", "pk": 1}, "$", "a reference to auth.Group"),
        (Ref, 5, "$", "a reference with model and pk"),
        (Point, [1], "$", "registered decode() raised TypeError"),
        (Group, 5, "$", "cannot be given as JSON"),
        (type, 5, "$", "cannot be given as JSON"),
    ],
)
def test_a_misfit_names_parameter_path_and_what_was_expected(hint: Any, value: Any, path: str, told: str) -> None:
    with pytest.raises(UnfitArgument) as info:
        coerce(hint, value)
    error = info.value
    assert isinstance(error, ValueError)
    assert (error.parameter, error.path) == ("x", path)
    assert told in error.reason
    assert str(error) == f"parameter 'x'{'' if path == '$' else f' at {path}'}: {error.reason}"
    assert "S3CRET" not in str(error)


@dataclass
class Add:
    left: Add | Subtract | int


@dataclass
class Subtract:
    left: Add | Subtract | int


def test_recursive_unions_end_with_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_durable.payloads.coercion.ATTEMPTS_LIMIT", 10_000)
    value: Any = "no integer"
    for _ in range(60):
        value = {"left": value}
    with pytest.raises(UnfitArgument, match="too many members of its Unions"):
        coerce(Add, value)
    assert coerce(Add, {"left": {"left": 1}}) == Add(Add(1))


def test_a_dataclass_registered_with_its_own_functions_is_made_by_them() -> None:
    @dataclass
    class Percent:
        value: int

    register_value(Percent, lambda percent: f"{percent.value}%", lambda text: Percent(int(text[:-1])), "test.Percent")
    assert coerce(Percent, "5%") == Percent(5)
    assert to_plain(Percent(5)) == "5%"


def test_only_parameters_that_are_there_and_annotated_are_touched() -> None:
    def fulfil(ctx: Any, order_id: int, amount: Decimal = Decimal(1), *, note=None, unknown: Missing = None) -> None:  # type: ignore[no-untyped-def]
        ...

    given = {"amount": "2", "note": "1", "unknown": "x", "no_parameter": "1"}
    assert coerce_arguments(fulfil, given) == {"amount": Decimal(2), "note": "1", "unknown": "x", "no_parameter": "1"}
    assert given["amount"] == "2"


def test_starred_parameters_are_coerced_member_by_member() -> None:
    def fulfil(ctx: Any, *amounts: Decimal, **dates: date) -> None: ...

    made = coerce_arguments(fulfil, {"amounts": ["1"], "dates": {"due": "2024-02-29"}})
    assert made == {"amounts": (Decimal(1),), "dates": {"due": date(2024, 2, 29)}}
    with pytest.raises(UnfitArgument, match=r"parameter 'amounts' at \$\[0\]"):
        coerce_arguments(fulfil, {"amounts": ["x"]})


def test_the_plain_form_of_a_value_is_coerced_back_to_it() -> None:
    def fulfil(
        ctx: Any,
        money: Money,
        at: datetime,
        wait: timedelta,
        blob: bytes,
        kinds: dict[Colour, set[Level]],
        ref: Ref[Group],
    ) -> None: ...

    arguments = {
        "money": Money(Decimal("1.50"), "CHF"),
        "at": datetime(2024, 1, 1, 12, 0, 0, 7, tzinfo=UTC),
        "wait": timedelta(days=-3, microseconds=5),
        "blob": b"\x00\xff",
        "kinds": {Colour.RED: {Level.LOW}},
        "ref": Ref.to(Group, 5),
    }
    plain = to_plain(arguments)
    del plain["money"]["seen"]  # no argument of the constructor
    assert coerce_arguments(fulfil, plain) == arguments
