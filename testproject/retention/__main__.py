"""python -m testproject.retention: remove many ended executions and say what it took.

    python -m testproject.services.postgres -- python -m testproject.retention --trees 300000 --keep
    python -m testproject.retention --trees 10000000        a disk with 40 GB free, and an hour

The database is the test project's (``DATABASE_URL``). It is migrated and filled; everything that has ended in it is
removed again.
"""

from __future__ import annotations

import argparse
import os
import time
from datetime import timedelta

import django


def main() -> None:
    """Load, count, prune."""
    parser = argparse.ArgumentParser(prog="python -m testproject.retention")
    parser.add_argument("--trees", type=int, default=300_000)
    parser.add_argument("--children", type=int, default=0, help="of each tree")
    parser.add_argument("--checkpoints", type=int, default=3, help="of each execution")
    parser.add_argument("--kept", type=int, default=50_000, help="younger trees beside them")
    parser.add_argument("--keep", action="store_true", help="the younger trees, in a database to be thrown away")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
    django.setup()

    from django.core.management import call_command
    from django.db import connection

    from django_durable.engine.retention import Terms
    from django_durable.operators.prune import prune_place
    from testproject.retention.loading import load_ended
    from testproject.retention.timing import timed

    call_command("migrate", verbosity=0)
    began = time.perf_counter()
    load_ended(options.kept, checkpoints=options.checkpoints, ended=timedelta(days=1))
    load_ended(options.trees, checkpoints=options.checkpoints, ended=timedelta(days=100), children=options.children)
    print(f"loaded in {time.perf_counter() - began:.0f} s")
    terms = Terms(periods={}, older_than=timedelta(days=30))
    for dry_run in (True, False):
        began = time.perf_counter()
        with timed(connection) as lengths:
            pruned = prune_place("default", terms, dry_run=dry_run)
        took, rows = time.perf_counter() - began, sum(pruned.rows.values())
        print(
            f"{'counted' if dry_run else 'removed'} {pruned.trees:,} trees, {rows:,} rows in {took:.1f} s:"
            f" {pruned.trees / took:,.0f} trees/s, {rows / took:,.0f} rows/s;"
            f" {len(lengths):,} transactions, the longest {max(lengths) * 1000:.0f} ms"
            + (f"; {pruned.bytes:,} bytes" if pruned.bytes is not None else "")
        )
    if not options.keep:
        prune_place("default", Terms(periods={}, older_than=timedelta()))


if __name__ == "__main__":
    main()
