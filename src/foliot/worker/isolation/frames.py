"""Message format between worker, template and children: JSON objects, each preceded by its length."""

import json
import os
import socket
import struct
from collections.abc import Mapping
from typing import Any

from foliot.model.errors import FoliotError

FRAME_BYTES = 8 * 1024 * 1024
"""Maximum frame size. It limits the memory that a child can make the worker use."""

_LENGTH = struct.Struct("!I")


class FrameError(FoliotError):
    """Data received from a socket is not a valid frame."""


def encode(frame: Mapping[str, Any]) -> bytes:
    # Escaped to ASCII, so that lone surrogates, as in file names, can be sent too.
    return with_length(json.dumps(frame, separators=(",", ":")).encode())


def with_length(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Assembles frames from the pieces of data that arrive."""

    def __init__(self, limit: int = FRAME_BYTES) -> None:
        self._limit = limit
        self._held = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Add data and return the frames that are complete now. Raises FrameError if the data is invalid."""
        self._held += data
        frames = []
        while len(self._held) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._held)
            if length > self._limit:
                raise FrameError(f"a frame of {length} bytes is more than {self._limit}")
            end = _LENGTH.size + length
            if len(self._held) < end:
                break
            frames.append(_decode(bytes(self._held[_LENGTH.size : end])))
            del self._held[:end]
        return frames


def receive(connection: socket.socket, descriptors: int = 0) -> tuple[dict[str, Any] | None, list[int]]:
    """Read a frame and the descriptors sent with it from a blocking socket. Frame None: the socket is
    closed."""
    head, received, _flags, _address = socket.recv_fds(connection, _LENGTH.size, descriptors)
    for descriptor in received:
        os.set_inheritable(descriptor, False)  # received descriptors are inheritable by default
    if not head:
        return None, received
    head += _exactly(connection, _LENGTH.size - len(head))
    (length,) = _LENGTH.unpack(head)
    return _decode(_exactly(connection, length)), received


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise FrameError("the connection was closed in the middle of a frame")
        data += piece
    return bytes(data)


def _decode(body: bytes) -> dict[str, Any]:
    try:
        frame = json.loads(body)
    except ValueError as error:
        raise FrameError(f"a frame is no JSON: {error}") from None
    if not isinstance(frame, dict):
        raise FrameError("a frame is no object")
    return frame
