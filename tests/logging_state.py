"""Restores the process-wide logging configuration after tests that change it."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import structlog


@contextmanager
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hook = root.handlers[:], root.level, threading.excepthook
    try:
        yield
    finally:
        structlog.reset_defaults()
        logging.captureWarnings(False)
        root.handlers[:] = handlers
        root.setLevel(level)
        threading.excepthook = hook
