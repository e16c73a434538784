"""A server under test can crash and come back at the same address; nothing of it outlives its owner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from testproject.services.postgres import OwnPostgres
from testproject.services.throwaway import Throwaway
from testproject.services.valkey import OwnValkey
from tests.services.databases import ROOT
from tests.services.waiting import wait_until


def test_postgres_keeps_every_commit_over_a_crash(private_postgres: OwnPostgres) -> None:
    with psycopg.connect(private_postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (number integer)")
        connection.execute("INSERT INTO kept VALUES (1)")
        private_postgres.stop(immediate=True)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    private_postgres.start()
    with psycopg.connect(private_postgres.url) as connection:
        assert connection.execute("SELECT number FROM kept").fetchall() == [(1,)]


def test_the_broker_forgets_everything_over_a_crash(valkey: OwnValkey) -> None:
    import redis

    with redis.from_url(valkey.url) as client:
        client.set("key", "value")
    valkey.stop()
    with redis.from_url(valkey.url) as client, pytest.raises(redis.ConnectionError):
        client.ping()
    valkey.start()
    with redis.from_url(valkey.url) as client:
        assert client.get("key") is None


def test_a_server_is_gone_when_its_owner_is_killed() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=ROOT
    )
    assert owner.stdout is not None
    with owner.stdout:
        folder = Path(owner.stdout.readline().strip())
        assert folder.is_dir()
        owner.kill()
        owner.wait()
    wait_until(lambda: not folder.exists(), within=20)


def test_a_second_start_is_refused_and_removal_is_final() -> None:
    place = Throwaway("test")
    place.start([sys.executable, "-c", "import time; time.sleep(600)"])
    with pytest.raises(RuntimeError, match="running already"):
        place.start(["true"])
    place.remove()
    assert not place.folder.exists()
    with pytest.raises(RuntimeError, match="is stopped"):
        assert place.pid


OWNER = """
import sys, time
from testproject.services.throwaway import Throwaway
place = Throwaway("test")
place.start([sys.executable, "-c", "import time; time.sleep(600)"])
print(place.folder, flush=True)
time.sleep(600)
"""
