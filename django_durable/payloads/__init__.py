"""What a value looks like in the database, and on the way to people.

``encode`` and ``decode`` are the one rule for arguments, results, messages and everything else that user code
hands over: an exact round trip in value and type, or a refusal before anything is stored. No pickle; data names
no import path, only names that this process has registered. ``tags`` has the table of the stored forms.
"""

from __future__ import annotations

from django_durable.payloads.codecs import PayloadCodec, apply_codecs, load_codecs, undo_codecs
from django_durable.payloads.coercion import UnfitArgument, coerce_arguments
from django_durable.payloads.decoding import decode
from django_durable.payloads.encoding import encode, encode_plain
from django_durable.payloads.failure import (
    FAILURE_BYTES,
    decode_failure,
    describe_failure,
    encode_failure,
    store_failure,
)
from django_durable.payloads.plain import to_plain
from django_durable.payloads.redaction import redact, redact_text, secrets_in, to_tagged
from django_durable.payloads.refs import Ref
from django_durable.payloads.registry import register_annotations, register_value, value_type
from django_durable.payloads.sameness import same_value
from django_durable.payloads.summary import summarize
from django_durable.payloads.tags import NESTING_LIMIT

__all__ = [
    "FAILURE_BYTES",
    "NESTING_LIMIT",
    "PayloadCodec",
    "Ref",
    "UnfitArgument",
    "apply_codecs",
    "coerce_arguments",
    "decode",
    "decode_failure",
    "describe_failure",
    "encode",
    "encode_failure",
    "encode_plain",
    "load_codecs",
    "redact",
    "redact_text",
    "register_annotations",
    "register_value",
    "same_value",
    "secrets_in",
    "store_failure",
    "summarize",
    "to_plain",
    "to_tagged",
    "undo_codecs",
    "value_type",
]
