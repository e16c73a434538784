"""Annotations of functions and classes, as far as their names can be found."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import InitVar
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    NotRequired,
    Required,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

__all__ = ["Hints", "bare", "resolve_hints", "substitute"]

WRAPPERS: Final = (Annotated, ClassVar, Final, Required, NotRequired)


class Hints(dict[str, Any]):
    """Name to evaluated annotation; ``complete`` is false where a name could not be found (yet)."""

    complete: bool = True


def resolve_hints(owner: Callable[..., Any] | type) -> Hints:
    """The evaluated annotations of a function, or of a class and its bases.

    An annotation whose names exist only for type checkers, or not yet, is left out and the others are kept:
    one ``TYPE_CHECKING`` import must not make every parameter of a workflow unknown. Never raises.
    """
    try:
        return Hints(get_type_hints(owner, include_extras=True))
    except Exception:  # an annotation is code of the project and may raise anything
        hints = Hints()
    for name, annotation, names, more_names in list_annotations(owner):
        try:
            hints[name] = evaluate(name, annotation, names, more_names)
        except Exception:
            hints.complete = False
    return hints


def evaluate(name: str, annotation: Any, names: dict[str, Any], more_names: dict[str, Any]) -> Any:
    def holder() -> None: ...

    holder.__annotations__ = {name: annotation}
    return get_type_hints(holder, names, more_names, include_extras=True)[name]


def list_annotations(
    owner: Callable[..., Any] | type,
) -> Iterator[tuple[str, Any, dict[str, Any], dict[str, Any]]]:
    """(name, annotation as written, global names, local names); of a class the bases first."""
    if not isinstance(owner, type):
        plain = inspect.unwrap(owner)
        for name, annotation in read_annotations(plain).items():
            yield name, annotation, getattr(plain, "__globals__", {}), {}
        return
    for base in reversed(owner.__mro__):
        names = getattr(sys.modules.get(base.__module__), "__dict__", {})
        for name, annotation in read_annotations(base).items():
            yield name, annotation, names, dict(vars(base))


def read_annotations(owner: Any) -> dict[str, Any]:
    if sys.version_info >= (3, 14):  # there, reading annotations is what evaluates them
        import annotationlib

        return annotationlib.get_annotations(owner, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(owner)


def bare(hint: Any) -> Any:
    """The annotation without Annotated, NotRequired and the like, and without a NewType's or alias's name."""
    while True:
        if get_origin(hint) in WRAPPERS:
            hint = get_args(hint)[0]
        elif isinstance(hint, InitVar):
            hint = hint.type
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = value_of(hint)
        else:
            return hint


def value_of(alias: Any) -> Any:
    """What a ``type`` statement stands for: evaluated only here, so its names may be missing."""
    try:
        return alias.__value__
    except NameError:
        return Any


def substitute(hint: Any, chosen: dict[Any, Any]) -> Any:
    """The annotation of a generic dataclass's field, with its type variables replaced."""
    if isinstance(hint, TypeVar):
        return chosen.get(hint, Any)
    variables = getattr(hint, "__parameters__", ())
    if isinstance(hint, type) or not variables:
        return hint
    return hint[tuple(chosen.get(variable, Any) for variable in variables)]
