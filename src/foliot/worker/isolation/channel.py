"""The child's end: progress, log lines and the one result or error that it sends to the worker."""

import json
import logging
import os
import socket
import sys
import threading
from typing import Any

from pydantic_core import to_json

from foliot.target.failures import error_of, traceback_of
from foliot.target.logs import LEVEL, line_of
from foliot.target.protocol import AttemptFailedError, LogLine
from foliot.worker.isolation.frames import FRAME_BYTES, encode, with_length

CUT_LENGTH = 24_000
"""How much is left of a result that no frame can hold: the store will not cut it again, even escaped."""
TEXT_LENGTH = 20_000
MESSAGE_LENGTH = 64 * 1024


class Channel:
    """Sends frames from any thread. A process that the function forks has no part in it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._pid = os.getpid()
        self._lock = threading.Lock()

    @property
    def is_mine(self) -> bool:
        """Whether this is the process of the attempt, not a copy that the function has made of it."""
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
        told = (words or error_of(failure))[:TEXT_LENGTH]
        self._send(encode({"error": told, "trace": traceback_of(failure)[-TEXT_LENGTH:]}))

    def refusal(self, failure: AttemptFailedError) -> None:
        """A failure that says by itself how it is to be taken."""
        how = {
            "is_permanent": failure.is_permanent,
            "retry_after_s": failure.retry_after_s,
            "result": json.loads(_json_of(failure.result)),
        }
        self._send(encode({"error": str(failure)[:TEXT_LENGTH], "refusal": how}))


def _json_of(value: Any) -> bytes:
    """The result as JSON. What JSON can't hold is kept as words; what no frame can hold is cut."""
    try:
        data = to_json(value, fallback=repr, inf_nan_mode="null", bytes_mode="base64")
    except Exception:
        data = to_json(repr(value).encode("utf-8", "replace").decode())
    if len(data) > FRAME_BYTES // 2:
        data = to_json({"truncated": data[: CUT_LENGTH * 4].decode("utf-8", "ignore")[:CUT_LENGTH]})
    return data


class ChannelHandler(logging.Handler):
    """Makes whatever is logged in the child, by any thread of it, a line of the execution."""

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
    """Send logs to the worker instead of the console: its lines are sent as well and would be doubles."""
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
