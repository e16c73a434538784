"""A Ref is label and key; the row is read where it is asked for."""

from __future__ import annotations

import copy
import pickle
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import connection, models
from django.test.utils import CaptureQueriesContext, isolate_apps

from django_durable.errors import UndecodableValue
from django_durable.payloads import Ref, decode, encode, to_plain


def saved(model: type[models.Model], pk: Any) -> Any:
    instance = model(pk=pk)
    instance._state.adding = False
    return instance


def test_a_ref_is_label_and_key_and_nothing_of_the_row() -> None:
    ref = Ref(saved(Group, 5))
    assert (ref.label, ref.pk, ref.model) == ("auth.Group", 5, Group)
    assert encode(ref, where="value") == '{"$ref":["auth.Group",5]}'
    assert decode('{"$ref":["auth.Group",5]}') == ref
    assert repr(ref) == "Ref(auth.Group, pk=5)"
    assert to_plain(ref) == {"model": "auth.Group", "pk": 5}


def test_refs_are_equal_by_label_and_key_and_immutable() -> None:
    ref = Ref[Group](saved(Group, 5))
    assert ref == Ref.to("auth.Group", 5) == Ref.to(Group, 5)
    assert len({ref, Ref.to(Group, 5), Ref.to(Group, 6), Ref.to(Permission, 5)}) == 3
    assert ref != ("auth.Group", 5)
    for change in (lambda: setattr(ref, "pk", 6), lambda: setattr(ref, "x", 6), lambda: delattr(ref, "pk")):
        with pytest.raises(AttributeError, match="immutable"):
            change()
    assert copy.deepcopy(ref) == ref == pickle.loads(pickle.dumps(ref))  # noqa: S301 - of our own making


def test_a_key_may_be_any_storable_value() -> None:
    for pk in (uuid4(), "a\x00", (1, "x"), 10**30):
        ref = Ref.to("auth.Group", pk)
        assert decode(encode({ref: [ref]}, where="value")) == {ref: [ref]}


@pytest.mark.parametrize("instance", [Group(name="x"), Group(pk=5)])
def test_an_unsaved_instance_has_no_row_to_refer_to(instance: Group) -> None:
    with pytest.raises(ValueError, match=r"auth\.Group is not saved"):
        Ref(instance)


@pytest.mark.parametrize("instance", [5, "auth.Group", Group, None])
def test_only_instances_can_be_referred_to(instance: Any) -> None:
    with pytest.raises(TypeError, match="takes a model instance"):
        Ref(instance)


@pytest.mark.parametrize("label", ["gone.Model", "auth.Gone", "nonsense", ""])
def test_a_model_that_is_not_installed_is_named(label: str) -> None:
    ref = decode(encode(Ref.to(label, 1), where="value"))
    with pytest.raises(UndecodableValue, match="no installed app has a model"):
        ref.load()


@pytest.mark.django_db
def test_load_reads_the_row_as_it_is_now() -> None:
    group = Group.objects.create(name="before")
    ref = decode(encode(Ref(group), where="value"))
    Group.objects.filter(pk=group.pk).update(name="after")
    assert ref.load().name == "after"
    assert ref.load(using="default")._state.db == "default"
    assert ref.load() is not ref.load()


@pytest.mark.django_db
def test_load_for_update_locks_and_needs_a_transaction() -> None:
    ref = Ref(Group.objects.create(name="x"))
    with CaptureQueriesContext(connection) as queries:
        assert ref.load_for_update().name == "x"
        assert ref.load_for_update(using="default").name == "x"
    assert len(queries) == 2
    if connection.features.has_select_for_update:
        assert all("FOR UPDATE" in query["sql"] for query in queries)


@pytest.mark.django_db
def test_load_asks_the_router_for_reading_and_load_for_update_for_writing(settings: Any) -> None:
    asked = []

    class Router:
        def db_for_read(self, model: type, **hints: Any) -> None:
            asked.append("read")

        def db_for_write(self, model: type, **hints: Any) -> None:
            asked.append("write")

    ref = Ref(Group.objects.create(name="x"))
    settings.DATABASE_ROUTERS = [Router()]
    ref.load()
    assert asked == ["read"]
    asked.clear()
    ref.load_for_update()
    assert "write" in asked and "read" not in asked
    asked.clear()
    ref.load(using="default")
    assert not asked


@pytest.mark.django_db
def test_a_deleted_row_raises_the_models_own_error_that_says_so() -> None:
    group = Group.objects.create(name="x")
    ref = Ref(group)
    group.delete()
    for load in (ref.load, ref.load_for_update):
        with pytest.raises(Group.DoesNotExist, match=rf"auth\.Group with primary key {ref.pk} does not exist"):
            load()
    with pytest.raises(ValueError, match="is not saved"):
        Ref(group)


@pytest.mark.django_db
def test_rows_that_a_default_manager_hides_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hiding(models.Manager[Group]):
        def get_queryset(self) -> models.QuerySet[Group]:
            return super().get_queryset().none()

    with isolate_apps("django.contrib.auth"):

        class HiddenGroup(Group):
            objects = Hiding()

            class Meta:
                proxy = True
                app_label = "auth"

    group = Group.objects.create(name="x")
    assert not HiddenGroup.objects.exists()
    monkeypatch.setattr(Ref, "model", property(lambda ref: HiddenGroup))
    assert Ref.to("auth.HiddenGroup", group.pk).load().name == "x"
