"""Report an error without its text: at default level a log carries ids and class names, never values."""

from __future__ import annotations

import logging

logger = logging.getLogger("django_durable")


def report(error: BaseException, text: str, *args: object) -> None:
    """Log an error of the engine's own; the traceback, whose texts may hold values, only at DEBUG."""
    logger.error(f"{text} (%s)", *args, type(error).__name__)
    logger.debug("traceback of the error before", exc_info=error)
