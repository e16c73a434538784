"""Field reports B78 and B80: U+0000 and lone surrogates get a job stuck, large integers are rounded.

``tests/unit`` and ``tests/properties`` hold the encoding itself; this is the way through the database and out of the
command line, which is the same on every backend.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from django_durable import Context, Execution, current_step, step, workflow
from tests.calling import durable
from tests.driving import drain, make_due
from tests.services.project import Project
from tests.unit.exactness import identical

VALUES: dict[str, Any] = {
    "NUL": "a\x00b",
    "NUL alone": "\x00",
    "six characters that look like one": "\\u0000",
    "the same after a NUL": "\x00\\u0000\\\\u0000",
    "lone surrogate": "\ud83d",
    "halves in the wrong order": "\ude00\ud83d",
    "emoji": "😀",
    "every control character": "".join(map(chr, range(32))),
    "line separators": "\u2028\u2029\x85",
    "as keys": {"a\x00": 1, "\\u0000": 2, "\ud83d": 3, "😀": 4, "": 5},
    "bytes": bytes(range(256)),
    "beyond 2^53": 1970670598291982290,
    "beyond 64 bit": -(2**64) - 1,
    "forty digits": 10**40,
    "five thousand digits": 10**5000 + 7,
    "floats": [1e16, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, math.inf],
    "int and float": [1, 1.0, True, 10**30, 1e30],
    "together": {"id": 1970670598291982290, "n": 10**40, "f": 1e16, "s": ["\x00", ("\ud83d",)]},
}


@step
def echo(value: Any) -> Any:
    return value


@step
def complains(value: Any) -> None:
    current_step().log("about it", value=value)
    raise ValueError(value)


@workflow
def through(ctx: Context, value: Any) -> dict[str, Any]:
    """Take a value on every way that there is, and wake up in between, so that all of it is read back."""
    ctx.set_value("published", value)
    echoed = ctx.step(echo, value)
    signalled = ctx.wait_for_signal("go")
    ctx.sleep(60)
    return {"input": value, "step": echoed, "signal": signalled}


@workflow
def fails(ctx: Context, value: Any) -> None:
    ctx.step(complains, value)


@pytest.mark.django_db
@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_as_it_went_in(name: str) -> None:
    value = VALUES[name]
    execution = through.start(value)
    drain()
    execution.signal("go", value)
    drain()
    make_due()
    drain()
    done = Execution.objects.locate(execution.pk)
    assert done.status == "completed"
    assert done.output is not None
    for found in (*done.output.values(), done.input["value"], done.value("published"), done.history()[1]["output"]):
        assert identical(found, value)


@pytest.mark.django_db
@pytest.mark.parametrize("name", VALUES)
def test_an_error_with_it_is_an_ordinary_failure(name: str) -> None:
    execution = fails.start(VALUES[name])
    drain()
    failed = Execution.objects.locate(execution.pk)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["type"] == "builtins.ValueError"
    assert failed.checkpoints.get().log


@pytest.mark.django_db
@pytest.mark.parametrize("name", VALUES)
def test_the_command_line_shows_it(name: str) -> None:
    execution = through.start(VALUES[name])
    drain()
    for verb in ("show", "history"):
        for options in ([], ["--json"], ["--payloads"], ["--payloads", "--json"]):
            called = durable(verb, execution.pk, *options)
            assert called.code == 0
            called.out.encode()
            assert "\x00" not in called.out


DIGITS = '{"id": 1970670598291982290, "n": 10000000000000000000000000000000000000000, "f": 1e16}'


@pytest.mark.django_db
def test_digits_that_are_typed_are_the_digits_that_are_stored_and_shown() -> None:
    started = durable("start", through.name, "--input", f'{{"value": {DIGITS}}}')
    execution = Execution.objects.locate(started.out.strip())
    assert identical(execution.input["value"], {"id": 1970670598291982290, "n": 10**40, "f": 1e16})
    shown = durable("show", execution.pk, "--json", "--payloads").out
    assert re.search(r'"id": 1970670598291982290,\s*"n": 10{40},\s*"f": 1e\+16', shown)
    text = durable("show", execution.pk, "--payloads").out
    assert "1970670598291982290" in text
    assert str(10**40) in text


@pytest.mark.django_db
@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity"])
def test_a_number_that_has_no_float_is_refused_and_not_made_infinite(number: str) -> None:
    called = durable("start", through.name, "--input", f'{{"value": {number}}}')
    assert called.code == 2
    assert number in called.error
    assert not Execution.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["a\x00b", "\ud83d", "\x00"])
def test_in_names_they_are_refused_where_they_are_given(text: str) -> None:
    execution = through.start("x")
    drain()
    calls: list[Any] = [
        lambda: through.using(key=text),
        lambda: through.using(tenant=text),
        lambda: through.using(queue=text),
        lambda: through.using(correlation_id=text),
        lambda: through.using(tags={"colour": text}),
        lambda: through.using(tags={text: "red"}),
        lambda: through.get(text),
        lambda: through.signal(text, "go"),
        lambda: execution.signal(text),
        lambda: execution.signal("go", dedup_key=text),
        lambda: step(echo.func, name=text),
        lambda: workflow(text),
        lambda: workflow(queue=text),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="NUL or lone surrogate"):
            call()
    assert Execution.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["a\x00b", "a\ud83db"])
def test_who_and_why_are_kept_without_them(text: str) -> None:
    """An operator's words come from a form; what cannot be stored must not keep the verb from working."""
    execution = through.start("x")
    assert execution.cancel(actor=text, reason=text) is True
    [note] = durable("show", execution.pk, "--json").data["notes"]
    for kept in (note["actor"], note["reason"]):
        assert kept.startswith("a")
        assert kept.endswith("b")
        assert text not in kept


def test_a_terminal_gets_what_it_can_show(project: Project) -> None:
    execution = through.start(VALUES["together"] | {"bell": "\x07\x1b[31m"})
    drain()
    for encoding, options in (("ascii", ["--payloads"]), ("utf-8", ["--payloads", "--json"])):
        shown = project.run_manage("durable", "show", str(execution.pk), *options, PYTHONIOENCODING=encoding)
        assert "1970670598291982290" in shown.stdout
        assert str(10**40) in shown.stdout
        assert not {"\x00", "\x07", "\x1b"} & set(shown.stdout)
        assert shown.stderr == ""
    value = json.loads(shown.stdout)["input"]["value"]
    assert (value["id"], value["n"], value["f"]) == (1970670598291982290, 10**40, 1e16)
