"""The part of PostgreSQL's wire protocol that the proxy needs to recognise statements and replies."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
"""Codes of requests for encryption, which a client may send before its startup message.

The answer is a byte.
"""
NO = b"N"
LENGTH = struct.Struct("!i")


class Frame(NamedTuple):
    kind: bytes
    """Message type, one letter. Empty for messages that a client sends before authentication."""
    body: bytes
    raw: bytes


class Frames:
    """Splits a stream of bytes, received in arbitrary pieces, into messages."""

    def __init__(self, *, is_client: bool) -> None:
        self._rest = b""
        self._is_greeting = is_client

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._rest += data
        while True:
            kind = 0 if self._is_greeting else 1
            if len(self._rest) < kind + LENGTH.size:
                return
            (length,) = LENGTH.unpack_from(self._rest, kind)
            if len(self._rest) < kind + length:
                return
            raw, self._rest = self._rest[: kind + length], self._rest[kind + length :]
            frame = Frame(raw[:kind], raw[kind + LENGTH.size :], raw)
            if self._is_greeting and not asks_for_encryption(frame):
                self._is_greeting = False
            yield frame


def asks_for_encryption(frame: Frame) -> bool:
    return not frame.kind and LENGTH.unpack_from(frame.body)[0] in (SSL_REQUEST, GSS_REQUEST)


class Conversation:
    """The statements that a client has sent on a connection, ever and in the current transaction."""

    def __init__(self) -> None:
        self._prepared: dict[bytes, str] = {}
        self.ever: set[str] = set()
        self.in_transaction: list[str] = []

    def heard(self, frame: Frame) -> None:
        """Record a message of the client."""
        if frame.kind == b"Q":
            self._said(frame.body.rstrip(b"\0").decode())
        elif frame.kind == b"P":
            name, statement, _ = frame.body.split(b"\0", 2)
            self._prepared[name] = statement.decode()
        elif frame.kind == b"B":
            _, name, _ = frame.body.split(b"\0", 2)
            self._said(self._prepared.get(name, ""))

    def _said(self, statement: str) -> None:
        if statement.startswith("BEGIN"):
            self.in_transaction = []
        self.in_transaction.append(statement)
        self.ever.add(statement)

    def has_ever_said(self, words: str) -> bool:
        return any(words in statement for statement in self.ever)

    def has_written(self, words: str) -> bool:
        """Return whether a statement of the current transaction contains these words."""
        return any(words in statement for statement in self.in_transaction)


def completes(frame: Frame, command: str) -> bool:
    """Return whether the server reports that this command is complete."""
    return frame.kind == b"C" and frame.body.rstrip(b"\0").decode() == command
