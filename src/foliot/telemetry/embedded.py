"""Log lines of an instance that an application embeds: through `logging`, under the name `foliot`.

The application's own configuration decides where they go and from which level on. Without any, Python writes
warnings and errors to stderr. Neither the root logger nor structlog is configured here.
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
    """Writes each event as one record; its fields are also in the record's attribute `foliot`."""
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
    """What `logging` is called with: the event's name and fields as text, and a traceback below."""
    name, exception = str(line.pop("event")), line.pop("exception", None)
    fields = dict(line)
    text = f"{name} {_fields(logger, method, line)}".rstrip()
    if exception is not None:
        text = f"{text}\n{exception}"
    return (text,), {"extra": {"foliot": {"event": name, **fields}}}
