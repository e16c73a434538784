"""Rule 43: recording an error succeeds whatever the error is; what is recorded is bounded and names no secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from django_durable.errors import FatalError, StepFailed, UndecodableValue
from django_durable.payloads import FAILURE_BYTES, decode_failure, describe_failure, encode_failure

SECRET = "S3CRET-xyz"


def caught(raise_it: Any) -> BaseException:
    try:
        raise_it()
    except BaseException as error:
        return error
    raise AssertionError("nothing raised")


def fail(error: BaseException) -> BaseException:
    def raise_it() -> None:
        local_variable = SECRET  # noqa: F841 - a traceback with locals would show it
        raise error

    return caught(raise_it)


def test_type_message_traceback_and_lineage_are_recorded() -> None:
    record = decode_failure(encode_failure(fail(FatalError("no money"))))
    assert record["type"] == "django_durable.errors.FatalError"
    assert record["message"] == "no money"
    assert record["lineage"] == [
        "django_durable.errors.FatalError",
        "django_durable.errors.DurableError",
        "builtins.Exception",
        "builtins.BaseException",
    ]
    assert record["traceback"].startswith("Traceback (most recent call last):\n")
    assert "in raise_it\n    raise error\n" in record["traceback"]
    assert record["traceback"].endswith("django_durable.errors.FatalError: no money\n")


def test_the_lineage_is_what_step_failed_asks() -> None:
    class ShopError(KeyError, ConnectionError):
        pass

    record = decode_failure(encode_failure(ShopError("x")))
    error = StepFailed(
        step="s", error_type=record["type"], message=record["message"], attempts=1, lineage=tuple(record["lineage"])
    )
    assert error.is_a(KeyError) and error.is_a(OSError) and error.is_a(ShopError) and not error.is_a(ValueError)
    assert "builtins.object" not in record["lineage"]


def test_a_traceback_has_no_local_variables() -> None:
    assert SECRET not in encode_failure(fail(ValueError("x")))


def test_extra_names_and_numbers_stand_beside_and_win() -> None:
    text = encode_failure(ValueError("x"), step="shop.charge", attempts=3, type="shop.Declined", message="declined")
    record = decode_failure(text)
    assert (record["step"], record["attempts"]) == ("shop.charge", 3)
    assert (record["type"], record["message"]) == ("shop.Declined", "declined")


def test_an_extra_that_cannot_be_stored_is_replaced_by_its_class() -> None:
    record = decode_failure(encode_failure(ValueError("x"), cost=Decimal("1.5"), bad=object(), big="x" * 100_000))
    assert record["cost"] == Decimal("1.5")
    assert record["bad"] == "<object>" and record["big"] == "<str>"


class BrokenStr(Exception):
    def __str__(self) -> str:
        raise RuntimeError(SECRET)


class StrOfNothing(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]


class EndlessStr(Exception):
    def __str__(self) -> str:
        return str(self)


class OddText(str):
    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __getitem__(self, key: Any) -> str:
        raise RuntimeError("no item")

    def encode(self, *args: Any) -> bytes:  # type: ignore[override]
        raise RuntimeError("no bytes")


class OddStr(Exception):
    def __str__(self) -> str:
        return OddText("odd")


class NeedsArguments(Exception):
    def __init__(self, *, code: int, socket: object) -> None:
        self.code = code


class BrokenNotes(Exception):
    __notes__ = 7  # type: ignore[assignment]


class BrokenNote(Exception):
    def __init__(self) -> None:
        self.__notes__ = [BrokenStr(), "fine"]


class Nameless(Exception):
    pass


Nameless.__module__ = None  # type: ignore[assignment]
Nameless.__qualname__ = "\ud83d" * 1_000

ForeignName = type("Fehler\U0001f600", (Exception,), {})


@pytest.mark.parametrize(
    "error",
    [
        Exception(),
        Exception(None, object()),
        ValueError("a\x00b"),
        ValueError("\ud83d lone \udfff"),
        ValueError("\ud83d\ude00 joined"),
        ValueError("\U0001f600" * 100_000),
        ValueError("x" * 10_000_000),
        ValueError({"a": [1] * 100_000}),
        UnicodeDecodeError("utf-8", b"\xff" * 10, 0, 1, "bad"),
        SyntaxError("bad", ("file", 1, 1, "text")),
        KeyError("x"),
        OSError(2, "gone", "file"),
        BrokenStr(),
        StrOfNothing(),
        EndlessStr(),
        OddStr(),
        NeedsArguments(code=1, socket=object()),
        BrokenNotes(),
        BrokenNote(),
        Nameless("x"),
        ForeignName("x"),
        KeyboardInterrupt(),
        SystemExit(3),
        MemoryError(),
        RecursionError("deep"),
        BaseExceptionGroup("group", [ValueError("x"), KeyboardInterrupt()]),
    ],
    ids=lambda error: type(error).__qualname__.encode("ascii", "replace").decode()[:30],
)
def test_any_error_is_recorded_within_the_limit(error: BaseException) -> None:
    for raised in (error, fail(error)):
        for limit in (1_000, FAILURE_BYTES):
            text = encode_failure(raised, limit=limit, step="shop.charge")
            assert len(text) <= limit
            assert text.isascii()
            record = decode_failure(text)
            assert set(record) == {"type", "message", "traceback", "lineage", "step"}
            assert all(type(record[name]) is str for name in ("type", "message", "traceback"))
            json.dumps(record, ensure_ascii=False).encode()


def test_a_broken_str_says_so_without_its_own_error_text() -> None:
    record = decode_failure(encode_failure(BrokenStr()))
    assert record["message"] == "<no message: str() of the exception raised RuntimeError>"
    assert SECRET not in str(record)


def test_long_texts_keep_head_and_tail() -> None:
    message = "HEAD" + "é" * 50_000 + "TAIL"
    record = decode_failure(encode_failure(fail(ValueError(message))))
    assert record["message"].startswith("HEAD") and record["message"].endswith("TAIL")
    assert "[… " in record["message"] and " characters …]" in record["message"]
    assert record["traceback"].startswith("Traceback") and record["traceback"].rstrip().endswith("TAIL")


def test_a_short_message_leaves_its_room_to_the_traceback() -> None:
    def nested(depth: int) -> None:
        if depth % 2:
            return nested(depth - 1)
        return nested_other(depth - 1) if depth > 0 else fail_now()

    def nested_other(depth: int) -> None:
        nested(depth)

    def fail_now() -> None:
        raise ValueError("short")

    text = encode_failure(caught(lambda: nested(60)), limit=4_000)
    assert 3_500 < len(text) <= 4_000


def test_an_endless_recursion_is_recorded_by_its_outer_and_inner_frames() -> None:
    def endless(n: int) -> int:
        return endless(n + 1) + 1

    record = decode_failure(encode_failure(caught(lambda: endless(0)), limit=50_000))
    assert record["type"] == "builtins.RecursionError"
    assert " frames …]" in record["traceback"] and "lambda" in record["traceback"]


def chain(length: int, cause: bool) -> BaseException:
    error: BaseException = ValueError("error 0")
    for number in range(1, length):
        later = ValueError(f"error {number}")
        if cause:
            later.__cause__ = error
        later.__context__ = error
        error = later
    return error


@pytest.mark.parametrize("cause", [True, False])
def test_a_chain_of_100_000_errors_is_cut_to_the_nearest(cause: bool) -> None:
    error = chain(100_000, cause)
    record = decode_failure(encode_failure(error))
    assert record["message"] == "error 99999"
    assert "ValueError: error 99992\n" in record["traceback"]
    assert "ValueError: error 99991\n" not in record["traceback"]
    assert "earlier exceptions …]" in record["traceback"]
    said = "direct cause" if cause else "During handling"
    assert record["traceback"].count(said) == 7


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    record = decode_failure(encode_failure(first))
    assert record["traceback"].count("ValueError: ") == 2


def test_a_suppressed_context_stays_out() -> None:
    def raise_it() -> None:
        try:
            raise KeyError("hidden")
        except KeyError:
            raise ValueError("shown") from None

    assert "hidden" not in decode_failure(encode_failure(caught(raise_it)))["traceback"].replace(
        'KeyError("hidden")', ""
    )


def groups(depth: int, width: int) -> BaseException:
    error: BaseException = ValueError("leaf")
    for level in range(depth):
        error = ExceptionGroup(f"level {level}", [error] * width)  # type: ignore[list-item]
    return error


def test_groups_show_their_members_within_bounds() -> None:
    record = decode_failure(encode_failure(ExceptionGroup("both", [ValueError("one"), KeyError("two")])))
    assert "| builtins.ValueError: one" in record["traceback"] and "| builtins.KeyError: 'two'" in record["traceback"]
    for error in (groups(500, 1), groups(3, 60), groups(1, 100_000)):
        assert len(encode_failure(error)) <= FAILURE_BYTES
    assert "[… 92 exceptions …]" in decode_failure(encode_failure(groups(1, 100)))["traceback"]


def test_notes_are_part_of_the_traceback() -> None:
    error = ValueError("x")
    error.add_note("undo of shop.refund failed: ConnectionError")
    assert "undo of shop.refund failed" in decode_failure(encode_failure(error))["traceback"]


def test_secrets_are_masked_in_message_and_traceback(settings: Any) -> None:
    settings.DURABLE = {"REDACT": ["password", "*token*"]}

    def raise_it() -> None:
        try:
            raise KeyError({"password": SECRET})
        except KeyError as error:
            raise ValueError(f"login failed: password={SECRET}, api_token: '{SECRET}' user=ann") from error

    text = encode_failure(caught(raise_it))
    assert SECRET not in text
    assert decode_failure(text)["message"] == "login failed: password=********, api_token: ******** user=ann"
    settings.DURABLE = {}
    bare = encode_failure(ValueError(f"refused {SECRET}"), secrets=[SECRET])
    assert decode_failure(bare)["message"] == "refused ********"


def test_a_secret_is_masked_before_the_text_is_cut() -> None:
    for position in range(0, 60_000, 997):
        message = "x" * position + SECRET * 20 + "y" * (60_000 - position)
        text = encode_failure(ValueError(message), limit=1_500, secrets=[SECRET])
        assert "S3CRET" not in text and "-xyz" not in text


@pytest.fixture
def broken_configuration(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def config() -> None:
        raise RuntimeError("no settings")

    for module in ("failure", "codecs"):
        monkeypatch.setattr(f"django_durable.payloads.{module}.config", config)
    yield


def test_broken_settings_do_not_stop_the_recording(broken_configuration: None) -> None:
    record = json.loads(encode_failure(ValueError(SECRET), step="shop.charge"))
    assert record["type"] == "builtins.ValueError" and record["step"] == "shop.charge"
    assert SECRET not in str(record)


@pytest.mark.parametrize("text", ["", "[1]", '"x"', "{", '{"$type:gone":1}', "[" * 100_000])
def test_a_stored_error_that_cannot_be_read_is_refused_or_described(text: str) -> None:
    with pytest.raises(UndecodableValue):
        decode_failure(text)
    record = describe_failure(text)
    assert record["type"] == "django_durable.errors.UndecodableValue"
    assert record["message"] and record["lineage"]


def test_a_stored_error_always_has_its_four_keys() -> None:
    assert decode_failure("{}") == {"type": "", "message": "", "traceback": "", "lineage": []}
