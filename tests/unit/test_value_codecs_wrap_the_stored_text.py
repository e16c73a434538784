"""Payload codecs: applied in order, undone backwards, and what was written before stays readable."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_durable.errors import CodecUnavailable, UndecodableValue
from django_durable.payloads import (
    decode,
    decode_failure,
    encode,
    encode_failure,
    load_codecs,
    same_value,
    summarize,
    to_tagged,
)
from django_durable.payloads.codecs import PayloadCodec

SECRET = "S3CRET-xyz"


class Zipped:
    name = "zlib"

    def encode(self, data: bytes) -> bytes:
        return zlib.compress(data)

    def decode(self, data: bytes) -> bytes:
        return zlib.decompress(data)


class Salted:
    """Like encryption: never the same text twice."""

    name = "salt.v1"
    count = 0

    def encode(self, data: bytes) -> bytes:
        Salted.count += 1
        return Salted.count.to_bytes(4, "big") + bytes(byte ^ 0x5A for byte in data)

    def decode(self, data: bytes) -> bytes:
        return bytes(byte ^ 0x5A for byte in data[4:])


class ReadOnlyZipped(Zipped):
    read_only = True


class Unreachable(Zipped):
    name = "vault"

    def encode(self, data: bytes) -> bytes:
        raise ConnectionError("the key service is down")

    def decode(self, data: bytes) -> bytes:
        raise ConnectionError("the key service is down")


class Textual(Zipped):
    name = "textual"

    def encode(self, data: bytes) -> bytes:
        return data.decode()  # type: ignore[return-value]


class Garbling(Zipped):
    name = "garbling"

    def decode(self, data: bytes) -> bytes:
        return b"\xff\xfe"


class Nameless(Zipped):
    name = "no spaces, please"


class NeedsArgument(Zipped):
    def __init__(self, key: str) -> None: ...


NOT_A_CODEC = object


def configure(settings: Any, *classes: Any) -> None:
    settings.DURABLE = {"CODECS": [f"{__name__}.{cls.__name__}" for cls in classes]}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """``import_string`` finds this module under the name that it has itself."""
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or __import__(__name__))


def test_without_codecs_there_is_no_prefix() -> None:
    assert encode({"a": SECRET}, where="value") == f'{{"a":"{SECRET}"}}'


def test_codecs_apply_in_order_and_are_undone_backwards(settings: Any) -> None:
    configure(settings, Zipped, Salted)
    text = encode({"a": (SECRET, 1)}, where="value")
    assert text.startswith("@zlib+salt.v1:") and text.isascii() and SECRET not in text
    assert decode(text) == {"a": (SECRET, 1)}
    assert to_tagged(text) == {"a": {"$tuple": [SECRET, 1]}}
    assert summarize(text) == f"dict, 1 key, {len(text)} bytes"


def test_texts_that_never_repeat_are_compared_by_value(settings: Any) -> None:
    configure(settings, Salted)
    one, other = (encode({"a": 1, "b": 2}, where="value") for _ in range(2))
    assert one != other
    assert same_value(one, other)
    assert not same_value(one, encode({"a": 1, "b": 2.0}, where="value"))


def test_values_from_before_and_after_each_change_of_the_setting_are_read(settings: Any) -> None:
    texts = [encode(["plain"], where="value")]
    configure(settings, Zipped)
    texts.append(encode(["zipped"], where="value"))
    configure(settings, Salted, Zipped)
    texts.append(encode(["both"], where="value"))
    configure(settings, ReadOnlyZipped, Salted)
    texts.append(encode(["salted"], where="value"))
    assert [text.partition(":")[0] for text in texts[1:]] == ["@zlib", "@salt.v1+zlib", "@salt.v1"]
    assert [decode(text) for text in texts] == [["plain"], ["zipped"], ["both"], ["salted"]]
    configure(settings, ReadOnlyZipped)
    assert encode(1, where="value") == "1"


def test_a_codec_that_is_not_configured_is_named(settings: Any) -> None:
    configure(settings, Zipped)
    text = encode([SECRET], where="value")
    configure(settings, Salted)
    with pytest.raises(UndecodableValue, match="'zlib' is not in DURABLE"):
        decode(text)
    assert summarize(text) == f"unreadable, {len(text)} bytes"


def test_a_codec_that_cannot_read_is_named_without_the_payload(settings: Any) -> None:
    configure(settings, Zipped)
    with pytest.raises(UndecodableValue, match=r"'zlib' cannot read this value: zlib\.error"):
        decode("@zlib:AAAA")
    configure(settings, Garbling)
    with pytest.raises(UndecodableValue, match="is a key wrong"):
        decode("@garbling:AAAA")


def test_a_codec_that_is_out_of_reach_is_no_broken_value(settings: Any) -> None:
    configure(settings, Unreachable)
    with pytest.raises(CodecUnavailable):
        encode([1], where="value")
    with pytest.raises(CodecUnavailable):
        decode("@vault:AAAA")
    with pytest.raises(CodecUnavailable):
        decode_failure("@vault:AAAA")
    assert summarize("@vault:AAAA") == "unreadable, 11 bytes"


def test_a_failure_is_recorded_without_its_text_where_the_codec_fails(settings: Any) -> None:
    configure(settings, Unreachable)
    text = encode_failure(ValueError(SECRET), step="shop.charge", attempts=3)
    assert SECRET not in text
    record = decode_failure(text)
    assert record["type"] == "builtins.ValueError" and record["attempts"] == 3
    assert record["message"] == "<not stored: a payload codec failed with django_durable.errors.CodecUnavailable>"
    assert record["traceback"] == ""


def test_failures_go_through_the_codecs_too(settings: Any) -> None:
    configure(settings, Zipped)
    text = encode_failure(ValueError(SECRET))
    assert text.startswith("@zlib:")
    assert decode_failure(text)["message"] == SECRET


def test_a_codec_that_gives_no_bytes_is_a_programming_error(settings: Any) -> None:
    configure(settings, Textual)
    with pytest.raises(TypeError, match="'textual' gave str, not bytes"):
        encode([1], where="value")


def test_the_size_limit_is_that_of_the_text_before_the_codecs(settings: Any) -> None:
    settings.DURABLE = {"MAX_PAYLOAD_BYTES": 1_024, "CODECS": [f"{__name__}.Salted"]}
    assert len(encode("x" * 1_022, where="value")) > 1_024


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        (["nowhere.Codec"], "'nowhere.Codec' cannot be made"),
        ([f"{__name__}.NeedsArgument"], "cannot be made"),
        ([f"{__name__}.NOT_A_CODEC"], "needs encode"),
        ([f"{__name__}.Nameless"], "needs encode"),
        ([f"{__name__}.Zipped", f"{__name__}.Zipped"], "two codecs have the name 'zlib'"),
    ],
)
def test_a_setting_that_names_no_codec_is_refused(paths: list[str], told: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=told):
        load_codecs(tuple(paths))


def test_the_protocol_describes_a_codec() -> None:
    assert isinstance(Zipped(), PayloadCodec)
    assert not isinstance(object(), PayloadCodec)
