"""Log lines of an embedded instance: written to the logger `foliot` of `logging`.

The application's logging configuration sets their destination and level. Without one, Python writes warnings
and errors to stderr. This module configures neither the root logger nor structlog.
"""

import logging
from typing import Any, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

from foliot.telemetry.hidden import hidden
from foliot.telemetry.logs import LogObserver
from foliot.telemetry.rendering import plain, printable

LOGGER = "foliot"
_fields = structlog.processors.LogfmtRenderer(bool_as_flag=False)


def embedded_log() -> LogObserver:
    """Return an observer that logs each event as one record, with its fields in the attribute `foliot`."""
    log = structlog.wrap_logger(
        logging.getLogger(LOGGER),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.processors.format_exc_info,
            hidden,
            plain,
            printable,
            _to_record,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return LogObserver(log=cast("FilteringBoundLogger", log.bind()))


def _to_record(
    logger: WrappedLogger, method: str, line: EventDict
) -> tuple[tuple[str], dict[str, dict[str, Any]]]:
    """Return the arguments for `logging`: event name and fields as text, followed by a traceback."""
    name, exception = str(line.pop("event")), line.pop("exception", None)
    fields = dict(line)
    text = f"{name} {_fields(logger, method, line)}".rstrip()
    if exception is not None:
        text = f"{text}\n{exception}"
    return (text,), {"extra": {"foliot": {"event": name, **fields}}}
