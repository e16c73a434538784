"""A payload codec whose key service is away, at whatever call: no run fails, no attempt is used, no way is changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from django_durable import (
    CallbackFailed,
    Context,
    Execution,
    Retry,
    StepFailed,
    complete_callback,
    fail_callback,
    step,
    workflow,
)
from django_durable.errors import CodecUnavailable
from django_durable.events import publish
from django_durable.models import ApprovalRequest
from django_durable.payloads import decode, encode
from django_durable.testing import assert_replays, export_history
from tests.driving import drain, make_due

pytestmark = pytest.mark.django_db(transaction=True)


class Vault:
    """Reaches its key service but at one call, the ``fails_at``-th that a turn makes."""

    name = "vault"
    calls = 0
    fails_at = 0
    counting = False

    def encode(self, data: bytes) -> bytes:
        return self._ask(data)

    def decode(self, data: bytes) -> bytes:
        return self._ask(data)

    def _ask(self, data: bytes) -> bytes:
        if Vault.counting:
            Vault.calls += 1
            if Vault.calls == Vault.fails_at:
                raise ConnectionRefusedError("the key service is away")
        return data[::-1]


tokens: list[str] = []


@step("outage.note", retry=Retry(max_attempts=2, initial=0))
def note(word: Any) -> Any:
    return word


@step("outage.note_away", queue="away", retry=Retry(max_attempts=2, initial=0))
def note_away(word: Any) -> Any:
    return word


@step("outage.note_with_it", transactional=True)
def note_with_it(word: Any) -> Any:
    return word


@step("outage.refuse")
def refuse() -> None:
    raise KeyError("no")


@step("outage.hand_out")
def hand_out(token: str) -> None:
    if token not in tokens:
        tokens.append(token)


@workflow("outage.child")
def child(ctx: Context, word: str) -> str:
    return word


def careful(ask: Callable[[], Any]) -> Any:
    """A body that has an answer to everything."""
    try:
        return ask()
    except StepFailed as error:
        return "refused" if error.is_a(KeyError) else "another branch"
    except CallbackFailed as error:
        return error.message
    except Exception as error:
        return f"another branch: {type(error).__name__}"


@workflow("outage.runs", budget={"words": 10})
def runs(ctx: Context, word: str) -> list[Any]:
    told = [
        careful(lambda: ctx.step(note, [word])),
        careful(lambda: ctx.step(note_with_it, word)),
        careful(lambda: ctx.step(note_away, word)),
        careful(lambda: ctx.step(refuse)),
        careful(lambda: ctx.gather(ctx.submit(note, word), ctx.submit(child, word))),
        careful(lambda: ctx.map(note, [word, word])),
        careful(lambda: ctx.child(child, word)),
        careful(lambda: ctx.now() is not None),
        careful(lambda: ctx.set_value("key", word)),
        careful(lambda: ctx.set_tags(word=word)),
        careful(lambda: ctx.spend("words", 1)),
        careful(lambda: ctx.wait_for_signal("go")),
        careful(lambda: ctx.wait_any("stop", "on").value),
        careful(lambda: ctx.wait_for_event("news", {"word": word})),
        careful(lambda: ctx.wait_for_approval("ok", data=word).approved),
    ]
    callbacks = [ctx.create_callback("good"), ctx.create_callback("bad")]
    for callback in callbacks:
        careful(lambda c=callback: ctx.step(hand_out, c.token))  # type: ignore[misc]
    return [*told, *(careful(callback.wait) for callback in callbacks)]


@workflow("outage.undoes")
def undoes(ctx: Context, word: str) -> None:
    ctx.compensate(note, "undo of the run")
    try:
        with ctx.saga():
            ctx.compensate(note, "undo of the block")
            ctx.step(refuse)
    except StepFailed as error:
        assert error.is_a(KeyError)
    ctx.step(note, word)
    raise LookupError("so it ends")


@pytest.fixture(autouse=True)
def vault(settings: Any) -> None:
    settings.DURABLE = {**settings.DURABLE, "CODECS": [f"{__name__}.Vault"], "REDACT": ["password"]}
    tokens.clear()
    Vault.counting = False


def answer(execution: Execution[Any]) -> None:
    """What others do meanwhile; their key service is there."""
    for request in ApprovalRequest.objects.filter(execution_id=execution.pk, outcome=""):
        execution.decide(request.name, approved=True, actor="ann")
    if len(tokens) == 2:
        complete_callback(tokens[0], "good")
        fail_callback(tokens[1], "bad")


def finish(target: Any, fails_at: int) -> Execution[Any]:
    """Run it to its end, with one outage at this call."""
    tokens.clear()
    Vault.calls, Vault.fails_at = 0, fails_at
    execution = target.start("word")
    if target is runs:
        execution.signal("go", 1)
        execution.signal("on", 2)
        publish("news", {"word": "word"})
    for _ in range(12):
        Vault.counting = True
        drain()
        Vault.counting = False
        execution = Execution.objects.locate(execution.pk)
        if execution.is_terminal:
            return execution
        answer(execution)
        make_due()
    raise AssertionError(f"it is still {execution.status}: {execution.history()}")


def shape(execution: Execution[Any]) -> list[Any]:
    return [(entry["kind"], entry["name"], entry["status"], entry["attempts"]) for entry in execution.history()]


EVERY = min(4, int(os.environ.get("CRASH_SWEEP_EVERY", "4")))
"""Of so many calls one fails; ``make evidence`` lets each of them fail."""


@pytest.mark.parametrize("target", [runs, undoes], ids=["runs", "undoes"])
def test_no_call_of_a_turn_is_one_too_many(target: Any) -> None:
    healthy = finish(target, 0)
    total = Vault.calls
    assert total > 10
    assert healthy.status == ("completed" if target is runs else "failed")
    if target is runs:
        assert "another branch" not in str(healthy.output)
    for number in range(1, total + 1, EVERY):
        execution = finish(target, number)
        where = f"outage at call {number} of {total}"
        assert execution.status == healthy.status, (where, execution.error)
        assert execution.recoveries == 0, where
        assert execution.output == healthy.output, where
        assert shape(execution) == shape(healthy), where
        if target is undoes:
            assert execution.error is not None
            assert execution.error["type"] == "builtins.LookupError", (where, execution.error)


def test_the_run_waits_for_it_and_nothing_is_consumed() -> None:
    execution = runs.start("word")
    Vault.counting, Vault.calls, Vault.fails_at = True, 0, 1
    drain()
    waiting = Execution.objects.locate(execution.pk)
    assert (waiting.status, waiting.recoveries, waiting.history()) == ("pending", 0, [])


def test_who_calls_from_outside_gets_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = encode({"a": 1}, where="a value")
    for call in (lambda: encode(1, where="a value"), lambda: decode(stored), lambda: runs.start("x")):
        Vault.counting, Vault.calls, Vault.fails_at = True, 0, 1
        with pytest.raises(CodecUnavailable, match="vault") as raised:
            call()
        assert isinstance(raised.value, OSError)
        assert "away" not in str(raised.value)


def test_a_replay_that_meets_it_says_so_instead_of_finding_nothing() -> None:
    execution = finish(runs, 0)
    history = export_history(execution)
    assert_replays(runs, history)
    Vault.counting, Vault.calls, Vault.fails_at = True, 0, 10**9
    assert_replays(runs, history)
    total = Vault.calls
    for number in range(1, total + 1):
        Vault.calls, Vault.fails_at = 0, number
        with pytest.raises(CodecUnavailable):
            assert_replays(runs, history)
