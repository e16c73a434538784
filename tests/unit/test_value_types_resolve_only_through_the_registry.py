"""Rule 55: a stored name is looked up among what this process has registered, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import InitVar, dataclass, field, make_dataclass
from decimal import Decimal
from enum import Enum, Flag, IntFlag, StrEnum, auto
from threading import Event
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, NewType, TypeVar

import pytest

from django_durable.errors import UndecodableValue, UnserializableValue
from django_durable.payloads import decode, encode, register_annotations, register_value, to_plain, value_type
from django_durable.payloads.registry import registry

if TYPE_CHECKING:
    from nowhere import Gone, Missing

T = TypeVar("T")


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    """Registrations of one test are gone after it."""
    kept = dict(registry.by_class), dict(registry.by_name), list(registry.unread)
    yield
    for held, before in zip((registry.by_class, registry.by_name), kept[:2], strict=True):
        held.clear()
        held.update(before)
    registry.unread[:] = kept[2]


def round_trip(value: Any) -> Any:
    return decode(encode(value, where="value"))


class Colour(Enum):
    RED = "r"
    CRIMSON = "r"  # noqa: PIE796 - an alias
    PAIR = (1, Decimal("2.5"))
    LAMBDA = object()


class Kind(StrEnum):
    BIG = "big"


class Rights(Flag):
    READ = auto()
    WRITE = auto()


class Bits(IntFlag):
    A = 1


@dataclass(frozen=True, slots=True)
class Money:
    amount: Decimal
    currency: str = "EUR"


@dataclass
class Line:
    price: Money
    kind: Kind | None = None


@dataclass
class Box(Generic[T]):
    inside: T


@dataclass
class Order:
    lines: list[Line] = field(default_factory=list)
    boxes: dict[str, Box[Colour]] = field(default_factory=dict)
    SIZE: ClassVar[int] = 1


Alias = NewType("Alias", Rights)  # type: ignore[valid-newtype]


def step_with_annotations(
    order: Order, bits: Literal[Bits.A], then: Callable[[int], str], *rest: Annotated[Alias, "x"]
) -> tuple[Money, ...]: ...


def test_annotations_make_enums_and_dataclasses_storable_through_generics_unions_and_fields() -> None:
    order = Order([Line(Money(Decimal("1.50")), Kind.BIG)], {"a": Box(Colour.PAIR)})
    with pytest.raises(UnserializableValue):
        encode(order, where="value")
    register_annotations(step_with_annotations)
    assert round_trip(order) == order
    for value in (Money(Decimal(1)), Kind.BIG, Colour.RED, Box(1), Rights.READ | Rights.WRITE, Rights(0), Bits.A):
        back = round_trip([value, {value: 1}] if value.__hash__ else [value])
        assert back[0] == value and type(back[0]) is type(value)


def test_reading_alone_evaluates_the_annotations_too() -> None:
    text = '{"$type:' + Money.__module__ + '.Money":{"amount":{"$decimal":"1"},"currency":"CHF"}}'
    with pytest.raises(UndecodableValue, match="is registered in this process"):
        decode(text)
    register_annotations(step_with_annotations)
    assert decode(text) == Money(Decimal(1), "CHF")


def test_names_for_type_checkers_only_hide_nothing_else() -> None:
    def typed(unknown: Missing, money: Money, later: list[Gone]) -> Missing: ...

    register_annotations(typed)
    assert round_trip(Money(Decimal(1))) == Money(Decimal(1))
    with pytest.raises(UnserializableValue):
        encode(Colour.RED, where="value")


def test_a_name_that_appears_later_is_found_then() -> None:
    module = ModuleType("late_module")
    exec("def f(x: 'Later') -> None: ...", module.__dict__)  # noqa: S102
    register_annotations(module.f)
    later = make_dataclass("Later", [("x", int)], namespace={"__module__": "late_module"})
    with pytest.raises(UnserializableValue):
        encode(later(1), where="value")
    module.Later = later  # type: ignore[attr-defined]
    assert round_trip(later(1)) == later(1)


def test_nothing_is_evaluated_at_registration() -> None:
    def bomb(x: boom()) -> None: ...  # type: ignore[valid-type]

    calls = []

    def boom() -> type:
        calls.append(1)
        return int

    bomb.__globals__["boom"] = boom
    try:
        register_annotations(bomb)
        assert not calls
        with pytest.raises(UnserializableValue):
            encode(object(), where="value")
        assert calls
    finally:
        del bomb.__globals__["boom"]


def test_the_classes_in_the_fields_of_a_value_type_are_storable_with_it() -> None:
    value_type("test.Order")(Order)
    order = Order([Line(Money(Decimal(1)), Kind.BIG)], {"x": Box(Colour.RED)})
    assert round_trip([Kind.BIG, order]) == [Kind.BIG, order]


if sys.version_info >= (3, 12):

    def test_aliases_of_the_type_statement_are_followed_once() -> None:
        source = """
type Tree[T] = dict[str, Tree[T]] | list[Money] | T
type Later = Unknown
def f(tree: Tree[Kind], later: Later) -> None: ...
"""
        names: dict[str, Any] = {"Money": Money, "Kind": Kind}
        exec(source, names)  # noqa: S102
        register_annotations(names["f"])
        assert round_trip([Money(Decimal(1)), Kind.BIG]) == [Money(Decimal(1)), Kind.BIG]
        names["Unknown"] = Colour
        assert round_trip(Colour.RED) is Colour.RED


def test_nobody_takes_a_class_for_unknown_while_another_thread_registers_it() -> None:
    evaluating, go_on = Event(), Event()

    def slow() -> type:
        evaluating.set()
        go_on.wait(30)
        return Money

    def step(money: slow()) -> None: ...  # type: ignore[valid-type]

    step.__globals__["slow"] = slow
    try:
        register_annotations(step)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(round_trip, Money(Decimal(1)))
            assert evaluating.wait(30)
            second = pool.submit(round_trip, Money(Decimal(2)))
            wait([second], timeout=0.3)  # without the lock it has its wrong answer by now
            go_on.set()
            assert (first.result(30), second.result(30)) == (Money(Decimal(1)), Money(Decimal(2)))
    finally:
        del step.__globals__["slow"]


def test_enum_members_are_stored_by_name_and_flags_by_number() -> None:
    for cls in (Colour, Rights, Bits):
        value_type(cls)
    prefix = f"$type:{__name__}."
    assert encode(Colour.CRIMSON, where="value") == f'{{"{prefix}Colour":"RED"}}'
    assert decode(f'{{"{prefix}Colour":"CRIMSON"}}') is Colour.RED
    assert round_trip(Colour.LAMBDA) is Colour.LAMBDA
    assert encode(Rights.READ | Rights.WRITE, where="value") == f'{{"{prefix}Rights":3}}'
    assert round_trip(Bits(9)) == Bits(9)
    for broken in ('"GONE"', '"r"', "1", "[]", "null"):
        with pytest.raises(UndecodableValue):
            decode(f'{{"{prefix}Colour":{broken}}}')


def test_dataclasses_come_back_without_running_their_code() -> None:
    @value_type("test.Careful")
    @dataclass
    class Careful:
        seen: list[int]
        seed: InitVar[int]
        derived: int = field(init=False)

        def __post_init__(self, seed: int) -> None:
            self.derived = seed
            self.seen.append(seed)

    value = Careful([1], 7)
    value.derived = 99
    back = round_trip(value)
    assert type(back) is Careful and back.seen == [1, 7] and back.derived == 99


def test_fields_may_be_added_with_a_default_and_are_never_dropped_silently() -> None:
    @value_type("test.Grown")
    @dataclass
    class Grown:
        old: int
        new: list[int] = field(default_factory=lambda: [5])

    first, second = (decode('{"$type:test.Grown":{"old":1}}') for _ in range(2))
    assert first == Grown(1, [5]) and first.new is not second.new
    with pytest.raises(UndecodableValue, match=r"test\.Grown is older than the field 'old'"):
        decode('{"$type:test.Grown":{}}')
    with pytest.raises(UndecodableValue, match=r"test\.Grown has no field 'gone' any more"):
        decode('{"$type:test.Grown":{"old":1,"gone":2}}')
    with pytest.raises(UndecodableValue, match="malformed"):
        decode('{"$type:test.Grown":[1]}')


def test_a_subclass_is_not_its_registered_base() -> None:
    value_type(Money)

    @dataclass(frozen=True)
    class Discount(Money):
        percent: int = 0

    with pytest.raises(UnserializableValue, match="@value_type"):
        encode(Discount(Decimal(1)), where="value")


def test_foreign_classes_go_through_their_two_functions() -> None:
    register_value(complex, lambda number: (number.real, number.imag), lambda pair: complex(*pair), "complex")
    assert encode(1 + 2j, where="value") == '{"$type:complex":{"$tuple":[1.0,2.0]}}'
    assert round_trip({"z": [1 + 2j], 3j: 1}) == {"z": [1 + 2j], 3j: 1}
    assert to_plain(1 + 2j) == [1.0, 2.0]
    with pytest.raises(UndecodableValue, match=r"malformed: builtins\.TypeError"):
        decode('{"$type:complex":"S3CRET"}')


def test_an_encode_that_returns_its_own_class_ends_at_the_nesting_limit() -> None:
    register_value(complex, lambda number: number, lambda number: number, "complex")
    with pytest.raises(UnserializableValue, match="200 levels"):
        encode(1j, where="value")
    assert to_plain(1j) == "…"


def test_decorators_work_bare_with_parentheses_and_with_a_name() -> None:
    assert value_type(Colour) is Colour
    assert value_type()(Kind) is Kind
    assert value_type("test.Money")(Money) is Money
    assert value_type(name="test.Line")(Line) is Line
    texts = [
        encode(value, where="value") for value in (Colour.RED, Kind.BIG, Money(Decimal(1)), Line(Money(Decimal(1))))
    ]
    assert texts[2].startswith('{"$type:test.Money":') and texts[3].startswith('{"$type:test.Line":')
    assert texts[0].startswith(f'{{"$type:{__name__}.Colour":')
    assert texts[1].startswith(f'{{"$type:{__name__}.Kind":')


def test_old_names_stay_readable_and_the_last_one_is_written() -> None:
    value_type("new.Money")(value_type("old.Money")(Money))
    assert encode(Money(Decimal(1)), where="value").startswith('{"$type:new.Money":')
    assert decode('{"$type:old.Money":{"amount":1,"currency":"X"}}') == Money(1, "X")  # type: ignore[arg-type]


def test_a_name_belongs_to_one_class() -> None:
    value_type("test.Thing")(Money)
    for register in (
        lambda: value_type("test.Thing")(Line),
        lambda: register_value(complex, str, complex, "test.Thing"),
    ):
        with pytest.raises(ValueError, match=r"'test\.Thing' belongs to .*Money"):
            register()
    for name in ("", "x" * 256):
        with pytest.raises(ValueError, match="1 to 255 characters"):
            value_type(name)(Money)


def test_a_reloaded_module_takes_the_place_of_its_earlier_classes() -> None:
    def load() -> Any:
        module = ModuleType("reloaded")
        sys.modules["reloaded"] = module
        source = "from dataclasses import dataclass\n@dataclass\nclass Thing:\n    x: int\n"
        exec(source, module.__dict__)  # noqa: S102
        return value_type(module.Thing)

    try:
        old, new = load(), load()
        assert type(decode(encode(new(1), where="value"))) is new
        with pytest.raises(UnserializableValue):
            encode(old(1), where="value")
    finally:
        del sys.modules["reloaded"]


def test_an_annotation_never_takes_a_name_away_or_renames_a_class() -> None:
    value_type("test.Money")(Money)
    value_type(f"{__name__}.Line")(Kind)
    register_annotations(step_with_annotations)
    assert round_trip(Money(Decimal(1))) == Money(Decimal(1))
    assert encode(Money(Decimal(1)), where="value").startswith('{"$type:test.Money"')
    with pytest.raises(UnserializableValue):
        encode(Line(Money(Decimal(1))), where="value")
    assert round_trip(Kind.BIG) is Kind.BIG


@pytest.mark.parametrize("cls", [int, dict, type("Plain", (), {}), Exception])
def test_only_enums_and_dataclasses_are_value_types(cls: type) -> None:
    with pytest.raises(TypeError, match="neither an Enum nor a dataclass; use register_value"):
        value_type(cls)


def test_a_dataclass_with_contents_beyond_its_fields_is_no_value_type() -> None:
    @dataclass
    class Failure(Exception):
        code: int

    with pytest.raises(TypeError, match="__new__ of its own"):
        value_type(Failure)

    def step(failure: Failure) -> None: ...

    step.__annotations__["failure"] = Failure
    register_annotations(step)
    with pytest.raises(UnserializableValue):
        encode(Failure(1), where="value")


@pytest.mark.parametrize("cls", [int, str, Decimal, dict, type(None)])
def test_built_in_types_cannot_be_registered_over(cls: type) -> None:
    with pytest.raises(TypeError, match="stored exactly as it is"):
        register_value(cls, lambda value: 1, lambda value: 1, "test.builtin")


def test_no_module_is_imported_because_of_data() -> None:
    for name in ("this", "antigravity", "this.d", "django.core.management.call_command"):
        with pytest.raises(UndecodableValue):
            decode(f'{{"$type:{name}":"x"}}')
    assert "this" not in sys.modules and "antigravity" not in sys.modules
