"""The classes beyond the built-in ones that may be stored, by name: data never names an import path.

An Enum or a dataclass gets here by ``@value_type``, or by standing in an annotation of a registered step or
workflow; any other class by ``register_value``. The name is ``module.qualname`` unless another is given: give
one before moving or renaming a class whose values are stored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin, overload

from django_durable.errors import qualified_name
from django_durable.payloads.hints import resolve_hints
from django_durable.payloads.value_types import ValueType, enum_type, is_storable_dataclass, record_type

__all__ = ["entry_for", "entry_named", "register_annotations", "register_value", "value_type"]

C = TypeVar("C", bound=type)
K = TypeVar("K")
V = TypeVar("V")

NAME_LIMIT = 255


@dataclass(frozen=True, slots=True)
class Registry:
    """What this process can store and read beyond the built-in types."""

    by_class: dict[type, ValueType]
    by_name: dict[str, ValueType]
    unread: list[Callable[..., Any] | type]
    """What has annotations that have not been looked at: at import their names may not exist yet."""
    lock: threading.RLock


registry = Registry({}, {}, [], threading.RLock())


@overload
def value_type(cls: C, /) -> C: ...


@overload
def value_type(cls: str | None = None, /, *, name: str | None = None) -> Callable[[C], C]: ...


def value_type(cls: C | str | None = None, /, *, name: str | None = None) -> C | Callable[[C], C]:
    """Make an Enum or a dataclass storable: ``@value_type``, ``@value_type()`` or ``@value_type("shop.Money")``.

    Values come back exactly: dataclasses field by field, without running ``__init__`` or ``__post_init__``; a
    field added later needs a default for values stored before it. The classes in a dataclass's fields become
    storable with it. Enum members are stored by their name, flags by their number. A class may be registered
    under several names: all are read, the last one is written. ``TypeError`` for another kind of class,
    ``ValueError`` where the name belongs to another class.
    """
    if isinstance(cls, type):
        return add_marked(cls, None)
    chosen = cls if cls is not None else name
    return lambda decorated: add_marked(decorated, chosen)


def register_value(
    cls: type[V], encode: Callable[[V], Any], decode: Callable[[Any], V], name: str | None = None
) -> None:
    """Make a foreign class storable by two functions.

    ``encode`` gives any storable value, ``decode`` gets an equal one and gives the object. Instances of exactly
    this class are meant, not of its subclasses. ``TypeError`` for a built-in type, ``ValueError`` where the
    name belongs to another class.
    """
    from django_durable.payloads.encoding import FORMS

    if not isinstance(cls, type):
        raise TypeError(f"register_value() takes a class, not {cls!r}")
    if cls in FORMS:
        raise TypeError(f"{qualified_name(cls)} is stored exactly as it is and cannot be registered")
    add(ValueType(name if name is not None else qualified_name(cls), cls, encode, decode))


def register_annotations(func: Callable[..., Any]) -> None:
    """Make the Enums and dataclasses in this function's annotations storable, those in their fields included.

    Only notes the function: its annotations are evaluated when a value of an unknown class or name turns up.
    """
    with registry.lock:
        registry.unread.append(func)


def entry_for(cls: type) -> ValueType | None:
    """How to store instances of exactly this class."""
    return registry.by_class.get(cls) or read_annotations(registry.by_class, cls)


def entry_named(name: str) -> ValueType | None:
    """How to read what is stored under this name."""
    return registry.by_name.get(name) or read_annotations(registry.by_name, name)


def add_marked(cls: C, name: str | None) -> C:
    add(describe(cls, name if name is not None else qualified_name(cls)))
    if is_dataclass(cls):
        with registry.lock:
            registry.unread.append(cls)
    return cls


def describe(cls: type, name: str) -> ValueType:
    if issubclass(cls, Enum):
        return enum_type(cls, name)
    if is_storable_dataclass(cls):
        return record_type(cls, name)
    what = "is a dataclass with a __new__ of its own" if is_dataclass(cls) else "is neither an Enum nor a dataclass"
    raise TypeError(f"{qualified_name(cls)} {what}; use register_value() for it (@value_type goes above @dataclass)")


def add(entry: ValueType) -> None:
    """Register; the same class defined again, as by a module reload, takes the place of the earlier one."""
    if not entry.name or len(entry.name) > NAME_LIMIT:
        raise ValueError(f"the name of a value type has 1 to {NAME_LIMIT} characters, not {len(entry.name)}")
    with registry.lock:
        known = registry.by_name.get(entry.name)
        if known is not None and known.cls is not entry.cls:
            if qualified_name(known.cls) != qualified_name(entry.cls):
                raise ValueError(
                    f"the value type name {entry.name!r} belongs to {qualified_name(known.cls)}; "
                    f"register {qualified_name(entry.cls)} under another one"
                )
            registry.by_class.pop(known.cls, None)
        registry.by_name[entry.name] = entry
        registry.by_class[entry.cls] = entry


def read_annotations(table: dict[K, ValueType], key: K) -> ValueType | None:
    """Register what the noted annotations name, and look again; those with unknown names are kept for later.

    Under the lock, so that nobody takes a class for unknown while another thread is about to register it.
    """
    with registry.lock:
        noted = registry.unread[:]
        registry.unread.clear()
        registry.unread.extend([owner for owner in noted if not read_hints(owner, set())])
        return table.get(key)


def read_hints(owner: Callable[..., Any] | type, seen: set[Any]) -> bool:
    """Whether every annotation of the function or class, and of the dataclasses in them, could be evaluated."""
    hints = resolve_hints(owner)
    complete = hints.complete
    for hint in hints.values():
        complete = read_hint(hint, seen) and complete
    return complete


def read_hint(hint: Any, seen: set[Any]) -> bool:
    complete = True
    for part in get_args(hint):
        complete = read_hint(part, seen) and complete
    cls = type(hint) if isinstance(hint, Enum) else get_origin(hint) or hint  # a member stands in a Literal
    if hasattr(cls, "__supertype__"):  # a NewType
        return read_hint(cls.__supertype__, seen) and complete
    if type(cls).__name__ == "TypeAliasType":
        return read_alias(cls, seen) and complete
    if not isinstance(cls, type) or cls in seen:
        return complete
    seen.add(cls)
    if issubclass(cls, Enum):
        add_unless_known(cls)
    elif is_storable_dataclass(cls):
        add_unless_known(cls)
        complete = read_hints(cls, seen) and complete
    return complete


def read_alias(alias: Any, seen: set[Any]) -> bool:
    """What a ``type`` statement stands for; it is evaluated only here, and may name itself."""
    if alias in seen:
        return True
    seen.add(alias)
    try:
        return read_hint(alias.__value__, seen)
    except NameError:
        return False


def add_unless_known(cls: type) -> None:
    name = qualified_name(cls)
    holder = registry.by_name.get(name)
    taken = holder is not None and qualified_name(holder.cls) != name
    if cls not in registry.by_class and not taken and len(name) <= NAME_LIMIT:
        add(describe(cls, name))
