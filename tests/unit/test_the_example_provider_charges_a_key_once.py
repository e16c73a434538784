"""The demo and the crash tests count on the provider's ledger: it has to be right under every race itself."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from testproject.shop.mailbox import Mailbox
from testproject.shop.provider import PaymentProvider

ROOT = Path(__file__).resolve().parents[2]
CLIENT = """
import sys
from decimal import Decimal
from testproject.shop.provider import PaymentProvider
print("ready", flush=True)
sys.stdin.readline()
provider = PaymentProvider(sys.argv[1])
for number in range(20):
    provider.charge(f"key-{number}", number, Decimal("1.10"))
    provider.refund(f"undo-{number}", number) if number % 2 else None
"""


@pytest.fixture
def provider(tmp_path: Path) -> PaymentProvider:
    return PaymentProvider(tmp_path / "ledger.sqlite3")


def test_processes_that_race_charge_and_refund_once_and_every_call_is_recorded(
    provider: PaymentProvider,
) -> None:
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(provider.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for _number in range(4)
    ]
    for client in clients:
        assert client.stdout and client.stdout.readline() == "ready\n"
    for client in clients:
        assert client.stdin
        client.stdin.write("go\n")
        client.stdin.flush()
    assert [client.communicate()[1] for client in clients] == [""] * 4
    ledger = provider.ledger()
    assert len(ledger.charges) == 20
    assert len(ledger.refunds) == 10
    assert len(ledger.calls) == 4 * 30
    assert [ledger.balance(number) for number in (2, 3)] == [Decimal("1.10"), Decimal(0)]


def test_a_repeat_returns_the_first_payment(provider: PaymentProvider) -> None:
    first = provider.charge("key", 1, Decimal("12.50"))
    assert provider.charge("key", 1, Decimal("12.50")) == first == {"id": "pay-key", "amount": "12.50"}


def test_a_key_is_refused_for_another_charge(provider: PaymentProvider) -> None:
    provider.charge("key", 1, Decimal("12.50"))
    with pytest.raises(ValueError, match="'key' was used for another charge"):
        provider.charge("key", 1, Decimal("12.51"))
    assert provider.ledger().balance(1) == Decimal("12.50")


def test_nothing_is_refunded_where_nothing_was_charged(provider: PaymentProvider) -> None:
    assert provider.refund("undo", 1) == 0
    provider.charge("key", 1, Decimal("12.50"))
    assert provider.refund("undo", 1) == 1
    assert provider.refund("other undo", 1) == 0
    assert provider.ledger().balance(1) == 0


def test_a_message_is_sent_once_a_key(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path / "mailbox.sqlite3")
    assert mailbox.send("key", "a@example.com", "Hello", "Text") is True
    assert mailbox.send("key", "a@example.com", "Hello", "Text") is False
    assert [message["subject"] for message in mailbox.messages()] == ["Hello"]
    assert len(mailbox.calls()) == 2


def test_the_ledger_is_found_by_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_LEDGER", str(tmp_path / "elsewhere.sqlite3"))
    PaymentProvider().charge("key", 1, Decimal(1))
    assert (tmp_path / "elsewhere.sqlite3").exists()
    PaymentProvider().forget()
    assert PaymentProvider().ledger().charges == []
