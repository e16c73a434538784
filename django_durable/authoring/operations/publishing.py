"""Publishing: what others can see of a run while it goes on."""

from __future__ import annotations

from typing import Any

from django_durable.authoring.operations.base import Base, operation
from django_durable.authoring.options import check_tags
from django_durable.models.columns import check_name
from django_durable.payloads import apply_codecs, encode_plain


class Publishing(Base):
    """``ctx.set_value``, ``ctx.set_tags``."""

    @operation
    def set_value(self, key: str, value: Any) -> None:
        """Publish a value, readable from outside as ``execution.value(key)`` once it is recorded."""
        check_name(key, "key")
        plain = encode_plain(value, where=f"value {key!r}")
        position, record = self._session.enter("value", key)
        if record is None:
            self._session.keep(position, "value", key, apply_codecs(plain))

    @operation
    def set_tags(self, /, **tags: str | int | bool) -> None:
        """Merge searchable attributes into the execution's tags."""
        checked = check_tags(dict(tags))
        plain = encode_plain(checked, where="tags")
        position, record = self._session.enter("tags", "")
        if record is None:
            self._session.set_tags(position, checked, apply_codecs(plain))
