"""``python -m testproject.demo [--celery | --planes] [--orders N] [--workers N] [--seed S] …``."""

from __future__ import annotations

import argparse
import random
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta

import django
from django.conf import settings

from testproject.demo.plan import ROUNDS, Plan
from testproject.demo.stage import Stage, StageError, staged


def main(argv: Sequence[str] | None = None) -> int:
    """0 where everything held, 1 where something did not, 2 where the demo could not begin."""
    plan = _plan(argv)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        with staged(celery=plan.celery, body_seconds=plan.body_seconds, planes=bool(plan.tenants)) as stage:
            _set_up_django()
            return 0 if _perform(plan, stage) else 1
    except StageError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _perform(plan: Plan, stage: Stage) -> bool:
    if stage.planes is not None:
        from testproject.demo.planes_performance import perform_on_planes

        return perform_on_planes(plan, stage, stage.planes)
    from testproject.demo.performance import perform

    return perform(plan, stage)


def _set_up_django() -> None:
    if settings.configured:
        raise StageError("Django's settings were read before the demo chose its database; start it with python -m.")
    django.setup()


def _plan(argv: Sequence[str] | None) -> Plan:
    parser = argparse.ArgumentParser(
        prog="python -m testproject.demo",
        description="Fulfils orders while the workers are killed in mid-step; proves that nothing was done twice.",
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--celery", action="store_true", help="Celery workers and beat instead of embedded workers")
    kinds.add_argument("--planes", action="store_true", help="tenants on data planes, one of which goes away")
    parser.add_argument("--orders", type=_positive, default=30, help="how many orders, without planes; 30")
    parser.add_argument(
        "--workers", type=_positive, help="how many worker processes; 2, with planes 3, with Celery 1 of two children"
    )
    parser.add_argument(
        "--tenants", type=_positive, default=20, help="how many tenants the planes have; 20, at least 4"
    )
    parser.add_argument("--outage", type=_positive, default=10, help="how long one plane is down, in seconds; 10")
    parser.add_argument("--seed", type=int, help="repeats the choices of an earlier run, not its timing")
    options = parser.parse_args(argv)
    tenants = max(4, options.tenants) if options.planes else 0
    return Plan(
        orders=ROUNDS * tenants or options.orders,
        workers=options.workers or (1 if options.celery else 3 if options.planes else 2),
        seed=random.randrange(1_000_000) if options.seed is None else options.seed,
        celery=options.celery,
        tenants=tenants,
        outage=timedelta(seconds=options.outage),
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 upwards")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
