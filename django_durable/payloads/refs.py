"""A reference to a row in the place of the row: what a workflow passes around instead of a model instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from django.core.exceptions import ObjectDoesNotExist

from django_durable.errors import UndecodableValue

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

__all__ = ["Ref"]

M = TypeVar("M", bound="Model")


class Ref(Generic[M]):
    """``Ref(order)``: the label of its model and its primary key; ``Ref[Order]`` in annotations.

    Immutable, equal to any other reference to the same row. It holds no data of the row: ``load()`` in a step
    reads what is there then. ``ValueError`` for an instance that is not saved.
    """

    __slots__ = ("label", "pk")

    label: str
    """``"shop.Order"``."""
    pk: Any

    def __init__(self, instance: M) -> None:
        if not hasattr(instance, "_meta") or isinstance(instance, type):
            raise TypeError(
                f"Ref() takes a model instance, not {type(instance).__name__}; Ref.to(model, pk) takes a key"
            )
        if instance._state.adding or instance.pk is None:
            raise ValueError(f"{instance._meta.label} is not saved: there is no row to refer to")
        fill(self, instance._meta.label, instance.pk)

    @classmethod
    def to(cls, model: type[M] | str, pk: Any) -> Ref[M]:
        """A reference by model, or label, and primary key; nothing is looked up."""
        ref: Ref[M] = object.__new__(cls)
        fill(ref, model if isinstance(model, str) else model._meta.label, pk)
        return ref

    @property
    def model(self) -> type[M]:
        """The model class; ``UndecodableValue`` where no installed app has it."""
        from django.apps import apps

        try:
            model: type[M] = apps.get_model(self.label)
        except (LookupError, ValueError):
            raise UndecodableValue(
                f"no installed app has a model {self.label[:200]!r}; the reference needs it"
            ) from None
        return model

    def load(self, *, using: str | None = None) -> M:
        """The row as it is now; the model's ``DoesNotExist`` when it is gone.

        ``using`` names the database; without it the project's routers choose, for reading.
        """
        return self._get(self._rows(using))

    def load_for_update(self, *, using: str | None = None) -> M:
        """The row, locked until the end of the transaction, which must be open; the routers choose for writing."""
        return self._get(self._rows(using).select_for_update())

    def _rows(self, using: str | None) -> QuerySet[M]:
        # The base manager, as for a foreign key: a default manager may hide rows that exist.
        rows: QuerySet[M] = self.model._base_manager.all()
        return rows if using is None else rows.using(using)

    def _get(self, rows: QuerySet[M]) -> M:
        try:
            return rows.get(pk=self.pk)
        except ObjectDoesNotExist as error:
            raise type(error)(
                f"{self.label} with primary key {self.pk!r} does not exist (any more): it was passed as a reference"
            ) from None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return (self.label, self.pk) == (other.label, other.pk)

    def __hash__(self) -> int:
        return hash((self.label, self.pk))

    def __repr__(self) -> str:
        return f"Ref({self.label}, pk={self.pk!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ref.to, (self.label, self.pk)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Ref is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a Ref is immutable")


def fill(ref: Ref[Any], label: str, pk: Any) -> None:
    object.__setattr__(ref, "label", label)
    object.__setattr__(ref, "pk", pk)
