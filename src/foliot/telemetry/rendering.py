"""Format log lines for the console or as JSON: one event per line, without passwords and secrets.

Lines go to stderr. Also formatted like this: records of libraries and task functions in `logging` from level
warning, Python's warnings, and uncaught exceptions of threads.
"""

import json
import logging
import re
import sys
import threading
from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import Literal, TextIO
from uuid import UUID

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from foliot.telemetry.hidden import hidden

Format = Literal["console", "json"]
LevelName = Literal["debug", "info", "warning", "error"]

LONGEST_TEXT = 8000
"""Maximum length of a text in a line, in characters: an error may quote a response of any size."""

_HANDLER_NAME = "foliot"

# Greedy, up to the last @: better to log a mangled address than half a password.
_PASSWORD_IN_URL = re.compile(r"(://[^\s:/@]*):\S*@")


def configure(log_format: Format, level: LevelName) -> None:
    """Write this process's log lines to stderr in this format, from this level up."""
    min_level = logging.getLevelNamesMapping()[level.upper()]
    timestamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    _signature.instance_id = None
    finish: list[Processor] = [
        structlog.processors.format_exc_info,
        hidden,
        structlog.processors.add_log_level,
        _signature,
        timestamp,
        plain,
        *_renderers(log_format),
    ]
    structlog.configure(
        processors=finish,
        wrapper_class=structlog.make_filtering_bound_logger(min_level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    _adopt_libraries(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.add_logger_name,
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *finish,
            ]
        ),
        min_level,
    )
    threading.excepthook = _tell_end


class _Signature:
    """Adds the instance id to lines without one, such as those of libraries."""

    instance_id: str | None = None

    def __call__(self, _logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
        if self.instance_id is not None:
            line.setdefault("instance_id", self.instance_id)
        return line


_signature = _Signature()


def sign(instance_id: str) -> None:
    """Add this instance id to all further lines of the process."""
    _signature.instance_id = instance_id


def _adopt_libraries(formatter: logging.Formatter, min_level: int) -> None:
    handler = _Handler(sys.stderr)
    handler.set_name(_HANDLER_NAME)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    for other in [one for one in root.handlers if one.get_name() == _HANDLER_NAME]:
        root.removeHandler(other)
    root.addHandler(handler)
    # Set on both: once a task function has run, the root logger's level is lower, for execution logs.
    handler.setLevel(max(min_level, logging.WARNING))
    root.setLevel(handler.level)
    logging.captureWarnings(True)


class _Handler(logging.StreamHandler[TextIO]):
    def format(self, record: logging.LogRecord) -> str:
        try:
            return super().format(record)
        except Exception:  # usually arguments that do not match the format string
            bare = copy(record)
            bare.msg, bare.args = str(record.msg), ()
            return super().format(bare)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Do nothing. The default prints the record's arguments, which may contain secrets."""


def _tell_end(ended: threading.ExceptHookArgs) -> None:
    """Log an uncaught exception of a thread. By default Python prints it unformatted."""
    if ended.exc_type is not SystemExit:
        name = None if ended.thread is None else ended.thread.name
        failure = (ended.exc_type, ended.exc_value, ended.exc_traceback)
        structlog.get_logger().error("thread_failed", thread=name, exc_info=failure)


def _renderers(log_format: Format) -> list[Processor]:
    if log_format == "json":
        return [structlog.processors.JSONRenderer(serializer=_to_json)]
    # The default exception formatter prints local variables, which may contain secrets.
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    return [printable, console]


def plain(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Convert values to text and numbers: mask passwords in URLs, cut long texts, format ids and instants."""
    for name, value in line.items():
        if isinstance(value, str):
            text = _PASSWORD_IN_URL.sub(r"\1:***@", value) if "://" in value else str(value)
            line[name] = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
        elif isinstance(value, float):
            line[name] = round(value, 6)
        elif isinstance(value, UUID):
            line[name] = str(value)
        elif isinstance(value, datetime):
            line[name] = value.isoformat()
    return line


def printable(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Escape line breaks and control characters, so that no text can forge a line or control the terminal."""
    for name, value in line.items():
        if isinstance(value, str) and not value.isprintable():
            # A traceback keeps its line breaks.
            line[name] = _spelled_out(value, spared="\n\t" if name == "exception" else "")
    return line


def _spelled_out(text: str, *, spared: str) -> str:
    return "".join(
        char if char.isprintable() or char in spared else char.encode("unicode_escape").decode()
        for char in text
    )


def _to_json(line: EventDict, default: Callable[[object], object]) -> str:
    try:
        return orjson.dumps(line, default=default, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # half a surrogate pair, or an integer beyond 64 bits
        return json.dumps(line, default=str)
