"""A plain function that is used as a step is one step, however often it is used, from however many threads."""

from __future__ import annotations

import threading

import pytest

from django_durable.authoring import registry
from django_durable.authoring.call import as_call
from django_durable.authoring.step import as_step, step
from django_durable.payloads.registry import registry as value_types


def plain(number: int) -> int:
    return number


def test_each_use_gives_the_same_step_and_leaves_nothing_behind() -> None:
    first = as_step(plain)
    code = registry.code_digest()
    noted = len(value_types.unread)
    for _ in range(10):
        assert as_step(plain) is first
        assert as_call(plain, (1,), {}).target is first
    assert len(value_types.unread) == noted
    assert registry._code is not None, "nothing has to be read again"
    assert registry.code_digest() == code


def declared(number: int) -> int:
    return number


def test_what_was_declared_of_a_function_holds_where_the_function_is_passed() -> None:
    with_options = step(declared, timeout=5)
    assert as_step(declared) is with_options


def test_a_digest_can_be_made_while_another_thread_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[BaseException] = []
    done = threading.Event()

    def declare() -> None:
        for number in range(2_000):
            step(lambda: None, name=f"unit.declared.{number}")
        done.set()

    def look() -> None:
        try:
            while not done.is_set():
                registry.code_digest()
                registry.declared_queues()
                list(registry.all_workflows())
        except BaseException as error:
            errors.append(error)

    monkeypatch.setattr(registry, "_source_of", lambda module: module)
    monkeypatch.setattr(registry, "_steps", dict(registry._steps))
    threads = [threading.Thread(target=target) for target in (declare, look, look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.undo()
    registry._code = None
    assert not errors
