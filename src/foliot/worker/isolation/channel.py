"""The child's end of its socket: sends progress, log lines and one result or error to the worker."""

import json
import logging
import os
import socket
import sys
import threading
from typing import Any

from pydantic_core import to_json

from foliot.kinds.target_protocol import AttemptFailedError, LogLine
from foliot.kinds.task_failures import error_of, traceback_of
from foliot.kinds.task_logs import LEVEL, line_of
from foliot.worker.isolation.frames import FRAME_BYTES, encode, with_length

CUT_LENGTH = 24_000
"""Characters kept of a result that is too large for a frame. The store won't cut this again, even escaped."""
TEXT_LENGTH = 20_000
MESSAGE_LENGTH = 64 * 1024


class Channel:
    """Sends frames to the worker, from any thread. Processes that the function forks can't send."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._pid = os.getpid()
        self._lock = threading.Lock()

    @property
    def is_mine(self) -> bool:
        """Whether this is the attempt's process, and not one that the function forked from it."""
        return os.getpid() == self._pid

    def _send(self, data: bytes) -> None:
        if self.is_mine:
            with self._lock:
                self._connection.sendall(data)

    def progress(self, fraction: float, text: str) -> None:
        self._send(encode({"progress": fraction, "text": str(text)[:TEXT_LENGTH]}))

    def log(self, line: LogLine) -> None:
        message = line.message[:MESSAGE_LENGTH]
        self._send(encode({"log": [line.logged_ts.isoformat(), line.level, line.logger, message]}))

    def result(self, value: Any) -> None:
        self._send(with_length(b'{"result":' + _json_of(value) + b"}"))

    def error(self, failure: BaseException, words: str | None = None) -> None:
        message = (words or error_of(failure))[:TEXT_LENGTH]
        self._send(encode({"error": message, "trace": traceback_of(failure)[-TEXT_LENGTH:]}))

    def refusal(self, failure: AttemptFailedError) -> None:
        """Send an AttemptFailedError with its own retry instructions and result."""
        how = {
            "is_permanent": failure.is_permanent,
            "retry_after_s": failure.retry_after_s,
            "result": json.loads(_json_of(failure.result)),
        }
        self._send(encode({"error": str(failure)[:TEXT_LENGTH], "refusal": how}))


def _json_of(value: Any) -> bytes:
    """Encode a result as JSON. Values that JSON can't hold become their `repr`. Too large a result is cut."""
    try:
        data = to_json(value, fallback=repr, inf_nan_mode="null", bytes_mode="base64")
    except Exception:
        data = to_json(repr(value).encode("utf-8", "replace").decode())
    if len(data) > FRAME_BYTES // 2:
        data = to_json({"truncated": data[: CUT_LENGTH * 4].decode("utf-8", "ignore")[:CUT_LENGTH]})
    return data


class ChannelHandler(logging.Handler):
    """Sends everything that any thread of the child logs to the worker, as log lines of the execution."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(LEVEL)
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = line_of(record)
            if self._channel.is_mine:
                self._channel.log(line)
            else:
                sys.stderr.write(f"{line.level} {line.logger}: {line.message}\n")
        except Exception:
            self.handleError(record)


def log_to(channel: Channel) -> None:
    """Send logs to the worker, and no longer to the console: console output is sent too, lines would be
    doubled."""
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, logging.StreamHandler) and _is_console(handler.stream):
            root.removeHandler(handler)
    root.addHandler(ChannelHandler(channel))
    if root.level > LEVEL:
        root.setLevel(LEVEL)


def _is_console(stream: Any) -> bool:
    try:
        return stream.fileno() in (1, 2)
    except (AttributeError, OSError, ValueError):
        return False
