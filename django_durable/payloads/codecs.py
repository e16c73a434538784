"""Payload codecs: what ``DURABLE["CODECS"]`` does with the encoded text before it is stored, such as encryption.

A codec is a class without constructor arguments, of which one instance serves all threads:

    class Zipped:
        name = "zlib"                                   # stored with each value; letters, digits, . _ -

        def encode(self, data: bytes) -> bytes:
            return zlib.compress(data)

        def decode(self, data: bytes) -> bytes:
            return zlib.decompress(data)

They apply in the order of the setting, and backwards when reading. A coded text is ``@<name>+<name>:<base64>``,
so values from before a codec was configured stay readable, and so do those of another order. A codec with
``read_only = True`` is no longer applied to new values: that is how to leave one.

A codec that cannot reach what it needs (a key service) raises ``OSError``: a turn is taken up again later, any other
caller gets ``CodecUnavailable``. Anything else that ``decode`` raises means that the text is broken.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Final, Protocol, runtime_checkable

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from django_durable.conf import config
from django_durable.errors import CodecUnavailable, UndecodableValue, qualified_name

__all__ = ["PayloadCodec", "apply_codecs", "load_codecs", "undo_codecs"]

MARK: Final = "@"  # begins no JSON
NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,40}")


@runtime_checkable
class PayloadCodec(Protocol):
    """What a class named in ``DURABLE["CODECS"]`` has; ``read_only`` may be left out."""

    name: str

    def encode(self, data: bytes) -> bytes:
        """Turn what is to be stored into other bytes."""
        ...

    def decode(self, data: bytes) -> bytes:
        """The inverse; raises ``OSError`` for "not reachable now", anything else for "not mine, or broken"."""
        ...


@lru_cache(maxsize=8)
def load_codecs(paths: tuple[str, ...]) -> dict[str, PayloadCodec]:
    """The codecs of the setting, by name, in order; ``ImproperlyConfigured`` for what is none."""
    codecs: dict[str, PayloadCodec] = {}
    for path in paths:
        try:
            codec = import_string(path)()
        except Exception as error:
            raise ImproperlyConfigured(f"DURABLE['CODECS']: {path!r} cannot be made: {error}") from error
        name = getattr(codec, "name", None)
        if not isinstance(codec, PayloadCodec) or not isinstance(name, str) or not NAME.fullmatch(name):
            raise ImproperlyConfigured(
                f"DURABLE['CODECS']: {path!r} needs encode(), decode() and a name of letters, digits, '.', '_', '-'"
            )
        if name in codecs:
            raise ImproperlyConfigured(f"DURABLE['CODECS']: two codecs have the name {name!r}")
        codecs[name] = codec
    return codecs


def apply_codecs(text: str) -> str:
    """The text to store: the same where no codec is configured."""
    paths = config().codecs
    if not paths:
        return text
    writing = {name: codec for name, codec in load_codecs(paths).items() if not getattr(codec, "read_only", False)}
    if not writing:
        return text
    data = text.encode("ascii")
    for name, codec in writing.items():
        try:
            data = codec.encode(data)
        except OSError as error:
            raise unavailable(name, error) from error
        if not isinstance(data, bytes):
            raise TypeError(f"encode() of the payload codec {name!r} gave {type(data).__name__}, not bytes")
    return f"{MARK}{'+'.join(writing)}:{b64encode(data).decode('ascii')}"


def undo_codecs(text: str) -> str:
    """The encoded text inside a coded one, and any other text as it is; ``UndecodableValue``."""
    if not text.startswith(MARK):
        return text
    names, _, body = text[1:].partition(":")
    codecs = load_codecs(config().codecs)
    try:
        data = b64decode(body, validate=True)
    except ValueError:
        raise UndecodableValue("the stored text begins like a coded one, but holds no base64") from None
    for name in reversed(names.split("+")):
        codec = codecs.get(name)
        if codec is None:
            raise UndecodableValue(
                f"the payload codec {name[:40]!r} is not in DURABLE['CODECS']; add it to read this value"
            )
        data = undo(name, codec, data)
    try:
        return data.decode("ascii")
    except ValueError:
        raise UndecodableValue(f"the payload codecs {names[:200]!r} give no encoded text; is a key wrong?") from None


def unavailable(name: str, error: OSError) -> CodecUnavailable:
    """By class only: the text of an error may hold addresses or keys."""
    return CodecUnavailable(
        f"the payload codec {name!r} cannot reach what it needs: {qualified_name(type(error))}; nothing is wrong with"
        " the value, try again later"
    )


def undo(name: str, codec: PayloadCodec, data: bytes) -> bytes:
    try:
        data = codec.decode(data)
    except OSError as error:
        raise unavailable(name, error) from error
    except Exception as error:
        raise UndecodableValue(
            f"the payload codec {name!r} cannot read this value: {qualified_name(type(error))}"
        ) from None
    if not isinstance(data, bytes):
        raise UndecodableValue(f"decode() of the payload codec {name!r} gave {type(data).__name__}, not bytes")
    return data
