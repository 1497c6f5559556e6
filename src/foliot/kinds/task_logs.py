"""Captures what task functions log, and assigns each line to its execution.

A context variable holds the execution's log. It follows awaits, tasks and threads, so one handler on the root
logger serves all attempts at once. Lines that Foliot itself logs outside of an attempt are not captured.
"""

import logging
from contextvars import ContextVar
from datetime import UTC, datetime

from foliot.kinds.target_protocol import Log, LogLine

_log: ContextVar[Log | None] = ContextVar("foliot_log", default=None)

LEVEL = logging.INFO


class _Capture(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _write_as_last_resort(record)
        log = _log.get()
        if log is None:
            return
        try:
            log(line_of(record))
        except Exception:
            # Report without the text and its arguments, since handleError prints them unredacted.
            self.handleError(logging.makeLogRecord({"name": record.name, "msg": "a line was not kept"}))


def _write_as_last_resort(record: logging.LogRecord) -> None:
    """Write a record to stderr if `logging` would have done so without this handler."""
    last_resort = logging.lastResort
    if last_resort is None or record.levelno < last_resort.level:
        return
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None:
        if any(handler is not _capture for handler in logger.handlers):
            return
        logger = logger.parent if logger.propagate else None
    last_resort.handle(record)


def line_of(record: logging.LogRecord) -> LogLine:
    logged_ts = datetime.fromtimestamp(record.created, UTC)
    try:
        message = record.getMessage()
    except Exception:  # arguments that don't match the format
        message = f"{record.msg} {record.args!r}"
    if record.exc_info:
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return LogLine(logged_ts, record.levelname.lower(), record.name, message)


_capture = _Capture(LEVEL)


def install() -> None:
    """Capture everything logged in this process from INFO on. Calling it again does nothing."""
    root = logging.getLogger()
    if _capture not in root.handlers:
        root.addHandler(_capture)
    if root.level > LEVEL:
        root.setLevel(LEVEL)


class capturing:  # noqa: N801 - reads as what it does
    """Assigns lines logged inside this context, also by tasks and threads started in it, to one execution."""

    __slots__ = ("_log", "_token")

    def __init__(self, log: Log) -> None:
        self._log = log

    def __enter__(self) -> None:
        install()
        self._token = _log.set(self._log)

    def __exit__(self, *_: object) -> None:
        _log.reset(self._token)
