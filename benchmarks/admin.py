"""``make bench-admin``: how long the admin's pages take over a million executions, and how many queries they cost.

``python -m benchmarks.admin [--executions N] [--checkpoints N]`` fills the database of ``DATABASE_URL`` (PostgreSQL,
without executions so far), measures each page, prints the figures and writes ``benchmarks/results/admin.json``. It
ends with 1 where a page breaks a limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import django

RESULTS: Final = Path(__file__).parent / "results" / "admin.json"
MOST_MS: Final = 300.0
MOST_QUERIES: Final = 10
MOST_LONG_MS: Final = 2000.0
MOST_LONG_BYTES: Final = 2_000_000
LONG: Final = 5_000
"""Checkpoints of the one long run."""
TIMES: Final = 9
CHUNK: Final = 100_000
ID: Final = (
    "(lpad(to_hex(1780000000000 + g * 10), 12, '0') || '7' || substr(md5(g::text), 1, 3)"
    " || '8' || substr(md5(g::text), 4, 15))::uuid"
)
STATUS: Final = (
    "CASE WHEN g %% 100 < 2 THEN 'failed' WHEN g %% 100 < 4 THEN 'waiting' WHEN g %% 100 = 4 THEN 'cancelled'"
    " WHEN g %% 10000 = 5 THEN 'dead' WHEN g %% 10000 = 6 THEN 'blocked' ELSE 'completed' END"
)
CREATED: Final = "to_timestamp((1780000000000 + g * 10) / 1000.0)"
TABLES: Final = ("django_durable_execution", "django_durable_checkpoint")


def main() -> int:
    """Fill, measure, tell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.admin", description=__doc__)
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--checkpoints", type=int, default=5, help="of each execution; 5")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
    django.setup()
    fill(options.executions, options.checkpoints)
    found = [measure(name, url) for name, url in pages(options.executions)]
    report = {"executions": options.executions, "checkpoints": options.executions * options.checkpoints + LONG}
    report |= {"cpus": os.cpu_count(), "postgres": server_version(), "pages": found}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    print(f"\n{report['executions']} executions, {report['checkpoints']} checkpoints, {report['cpus']} CPUs")
    for page in found:
        print(
            f"{page['page']:34} {page['median_ms']:8.1f} ms  {page['queries']:3} queries  {page['bytes']:8} bytes"
            f"  {'; '.join(page['broken'])}"
        )
    return 1 if any(page["broken"] for page in found) else 0


# -- filling -------------------------------------------------------------------------------------------------------


def fill(executions: int, checkpoints: int) -> None:
    """Write past the engine: what years of operation leave behind."""
    from django.core.management import call_command
    from django.db import connection

    from django_durable.models import Checkpoint, DeadLetter, DispatchHint, Execution

    if connection.vendor != "postgresql":
        sys.exit("bench-admin measures PostgreSQL: make bench-admin starts one, or set DATABASE_URL")
    call_command("migrate", verbosity=0)
    if Execution.objects.exists():
        sys.exit("the database has executions already; this measures in one of its own")
    error = json.dumps({"type": "shop.errors.CardRefused", "message": "refused", "traceback": "x" * 2000})
    finished = f"CASE WHEN {STATUS} IN ('waiting', 'blocked') THEN NULL ELSE {CREATED} + interval '3 seconds' END"
    row = {
        **dict.fromkeys(("id", "chain_id", "root_id"), ID),
        "tenant": "CASE WHEN g %% 4 = 0 THEN '' ELSE 'tenant-' || (g %% 20) END",
        "workflow": "(ARRAY['shop.fulfil', 'shop.restock', 'shop.return_parcel'])[1 + g %% 3]",
        "version": "'1'",
        "key": "'order-' || g",
        "current_key": "md5(g::text) || md5('k' || g)",
        "status": STATUS,
        "queue": "CASE WHEN g %% 50 = 0 THEN 'warehouse' ELSE 'durable' END",
        "tags": "jsonb_build_object('shop', g %% 50)",
        "seed": "md5(g::text)",
        "encoded_input": "'{\"order_id\": ' || g || ', \"note\": \"' || repeat('n', 200) || '\"}'",
        "encoded_error": f"CASE WHEN {STATUS} IN ('failed', 'dead', 'blocked') THEN '{error}' END",
        "created_at": CREATED,
        "started_at": CREATED,
        "finished_at": finished,
        "wake_at": f"CASE WHEN {STATUS} = 'waiting' THEN now() + interval '2 days' END",
    }
    position = {
        "execution_id": ID,
        "position": "p",
        "kind": "'step'",
        "name": "'shop.workflows.charge'",
        "status": "'completed'",
        "attempt": "1",
        "encoded_output": '\'{"id": "pay-\' || g || \'", "amount": "12.50"}\'',
        "started_at": f"{CREATED} + p * interval '50 ms'",
        "finished_at": f"{CREATED} + p * interval '50 ms' + interval '40 ms'",
    }
    letter = {
        "execution_id": ID,
        "generation": "1",
        "workflow": row["workflow"],
        "version": "'1'",
        "status": STATUS,
        "encoded_error": f"'{error}'",
        "created_at": CREATED,
        "retried_at": "CASE WHEN g %% 200 = 0 THEN NULL ELSE now() END",
    }
    hint = {
        "id": "gen_random_uuid()",
        "execution_id": ID,
        "revision": "2",
        "queue": "'durable'",
        "definition": "'d'",
        "due_at": "now() + interval '2 days'",
    }
    for first in range(1, executions + 1, CHUNK):
        last = min(first + CHUNK - 1, executions)
        series = f"FROM generate_series({first}, {last}) AS g"
        insert(Execution, row, series)
        insert(Checkpoint, position, f"{series} CROSS JOIN generate_series(0, {checkpoints - 1}) AS p")
        insert(DeadLetter, letter, f"{series} WHERE {STATUS} IN ('failed', 'dead')")
        insert(DispatchHint, hint, f"{series} WHERE {STATUS} = 'waiting'")
        print(f"{last} executions", file=sys.stderr, flush=True)
    long = f"FROM generate_series({executions}, {executions}) AS g"
    insert(Checkpoint, position, f"{long} CROSS JOIN generate_series({checkpoints}, {LONG - 1}) AS p")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def insert(model: Any, columns: dict[str, str], source: str) -> None:
    """Rows whose other columns have the model's defaults."""
    from django.db import connection

    expressions, params = [], []
    fields = [field for field in model._meta.concrete_fields if not getattr(field, "db_returning", False)]
    for field in fields:
        if field.attname in columns:
            expressions.append(columns[field.attname])
        else:
            expressions.append("%s")
            params.append(field.get_db_prep_save(field.get_default(), connection))
    names = ", ".join(f'"{field.column}"' for field in fields)
    statement = f"INSERT INTO {model._meta.db_table} ({names}) SELECT {', '.join(expressions)} {source}"
    with connection.cursor() as cursor:
        cursor.execute(statement, params)


# -- measuring -----------------------------------------------------------------------------------------------------


def pages(executions: int) -> Iterator[tuple[str, str]]:
    """What is opened."""
    from django_durable.models import Execution

    base = "/admin/django_durable"
    listed = f"{base}/execution/"
    newest = Execution.objects.order_by("-id")
    longest, ordinary = newest.values_list("pk", flat=True)[:2]
    yield "list", listed
    yield "list, page 2", f'{listed}?after=[0,"{newest[99].pk}"]'
    for status in ("completed", "failed", "waiting", "dead", "pending"):
        yield f"status {status}", f"{listed}?status__exact={status}"
    yield "workflow", f"{listed}?workflow=shop.fulfil"
    yield "workflow that has none", f"{listed}?workflow=shop.nothing"
    yield "queue", f"{listed}?queue=warehouse"
    yield "queue that has none", f"{listed}?queue=nowhere"
    yield "status and workflow", f"{listed}?status__exact=failed&workflow=shop.restock"
    yield "search by id", f"{listed}?q={ordinary}"
    yield "search by key", f"{listed}?q=order-{executions // 2}"
    yield "search for nothing", f"{listed}?q=no-such-key"
    yield "detail", f"{listed}{ordinary}/change/"
    yield f"detail of {LONG} checkpoints", f"{listed}{longest}/change/"
    yield "the same, last page", f"{listed}{longest}/change/?last=1"
    yield "dead letters", f"{base}/deadletter/"
    yield "dispatch hints", f"{base}/dispatchhint/"


def measure(name: str, url: str) -> dict[str, Any]:
    """Server time at the median of some requests, the queries of one, and what breaks a limit."""
    from django.contrib.auth import get_user_model
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    user, _created = get_user_model().objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    with CaptureQueriesContext(connection) as captured:
        response = client.get(url)
    queries = list(captured.captured_queries)  # the next request clears the log
    if response.status_code != 200:
        sys.exit(f"{url} answered {response.status_code}")
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        client.get(url)
        times.append((time.perf_counter() - began) * 1000)
        if times[0] > 5_000:
            break
    median, scanned = statistics.median(times), sorted(set(scans(queries)))
    is_long = str(LONG) in name or "the same" in name
    broken = []
    if median > (MOST_LONG_MS if is_long else MOST_MS):
        broken.append(f"slower than {MOST_LONG_MS if is_long else MOST_MS:g} ms")
    if len(queries) > MOST_QUERIES:
        broken.append(f"more than {MOST_QUERIES} queries")
    if len(response.content) > MOST_LONG_BYTES:
        broken.append("larger than two megabytes")
    broken += [f"scans {table}" for table in scanned]
    return {
        "page": name,
        "median_ms": round(median, 1),
        "queries": len(queries),
        "bytes": len(response.content),
        "broken": broken,
    }


def scans(queries: list[dict[str, str]]) -> Iterator[str]:
    """The large tables that the plan of a query reads from one end to the other."""
    from django.db import connection

    for query in queries:
        if not query["sql"].startswith("SELECT") or not any(table in query["sql"] for table in TABLES):
            continue
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (FORMAT JSON) " + query["sql"])
            (plan,) = cursor.fetchone()
        nodes = [(json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]]
        while nodes:
            node = nodes.pop()
            nodes += node.get("Plans", [])
            if node["Node Type"] == "Seq Scan" and node.get("Relation Name") in TABLES:
                yield node["Relation Name"]


def server_version() -> str:
    """Of the database."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return str(cursor.fetchone()[0])


if __name__ == "__main__":
    sys.exit(main())
