"""Text that no version wrote, classes that nobody registered, a codec that fails: the page comes anyway."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import QuerySet
from django.test import Client, override_settings

from django_durable.models import Checkpoint, DeadLetter, Message
from tests.admin.flows import completed, failed, overwrite, waiting
from tests.admin.html import parse
from tests.admin.visitors import DEAD_LETTERS, EXECUTIONS, page_of

pytestmark = pytest.mark.django_db

BROKEN = [
    "",
    "{",
    "nonsense",
    "[" * 100_000,
    "[" * 300 + "]" * 300,
    '{"$type:gone.Class": {"a": 1}}',
    '{"$decimal": "x"}',
    '{"$unknown": 1}',
    '"\\ud800"',
    "9" * 5_000,
    "@gone:YWJj",
    "@:",
    '{"type": 5, "message": {"a": [1]}, "traceback": null}',
    "null",
    "[1, 2]",
]


class Unreachable:
    """A codec whose key service is away."""

    name = "unreachable"

    def encode(self, data: bytes) -> bytes:
        return data

    def decode(self, data: bytes) -> bytes:
        raise OSError("connection refused")


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
@pytest.mark.parametrize("who", ["superuser", "viewer"])
def test_a_page_shows_what_can_be_read(text: str, who: str, request: pytest.FixtureRequest) -> None:
    client: Client = request.getfixturevalue(who)
    good, bad, letter = waiting("good"), waiting("bad"), failed("letter")
    bad.signal("other")
    columns: dict[str, Any] = dict.fromkeys(("encoded_input", "encoded_output", "encoded_error"), text)
    overwrite(bad, **columns, takeovers=text, awaiting=text)
    overwrite(letter, encoded_error=text)
    QuerySet(Checkpoint).filter(execution_id=bad.pk, kind="step").update(
        encoded_output=text, encoded_error=text, attempts_log=text
    )
    QuerySet(Message).filter(execution_id=bad.pk).update(payload=text)
    QuerySet(DeadLetter).update(encoded_error=text)

    found = parse(client.get(EXECUTIONS))
    assert all(page_of(execution) in "".join(found.links()) for execution in (good, bad, letter))
    assert page_of(letter) in parse(client.get(DEAD_LETTERS)).links()
    page = parse(client.get(page_of(bad)))
    assert str(bad.pk) in page.cells
    assert "signal:other" in page.cells
    assert page.cells.count("signal") == 1, "the rows beside the broken one are there"


def test_it_says_what_is_wrong_with_a_value(superuser: Client) -> None:
    execution = completed("c")
    overwrite(execution, encoded_output='{"$type:gone.Class": {"a": 1}}')
    page = parse(superuser.get(page_of(execution)))
    assert "It cannot be read here: no value type 'gone.Class' is registered in this process" in page.text


def test_a_codec_that_is_away_hides_values_and_nothing_else(superuser: Client) -> None:
    execution, letter = completed("c"), failed("f")
    for row in (execution, letter):
        overwrite(row, encoded_input="@unreachable:YWJj", encoded_error="@unreachable:YWJj")
    with override_settings(DURABLE={"CODECS": [f"{__name__}.Unreachable"]}):
        page = parse(superuser.get(page_of(execution)))
        assert "It cannot be read here: django_durable.errors.CodecUnavailable" in page.text
        assert str(execution.pk) in page.cells
        assert page_of(letter) in "".join(parse(superuser.get(EXECUTIONS)).links())


def test_a_status_that_this_version_does_not_know_is_shown(superuser: Client) -> None:
    execution = completed("c")
    overwrite(execution, status="hibernating", workflow="gone.away")
    assert "hibernating" in parse(superuser.get(EXECUTIONS)).cells
    page = parse(superuser.get(page_of(execution)))
    assert "hibernating" in page.cells
    assert not page.all("nav") or "durable-verbs" not in str(page.all("nav"))
