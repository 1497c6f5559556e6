"""As much of PostgreSQL's wire protocol as it takes to know what a connection is about to lose."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
"""A client asks for encryption before it says who it is; one byte is the answer."""
NO = b"N"
LENGTH = struct.Struct("!i")


class Frame(NamedTuple):
    kind: bytes
    """One letter; none for what a client says before it has said who it is."""
    body: bytes
    raw: bytes


class Frames:
    """Cuts a stream of bytes, in whatever pieces it comes, into messages."""

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
    """What one client has said on one connection: its statements, and those of the transaction under way."""

    def __init__(self) -> None:
        self._prepared: dict[bytes, str] = {}
        self.ever: set[str] = set()
        self.in_transaction: list[str] = []

    def heard(self, frame: Frame) -> None:
        """The client has said this."""
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
        """Whether a statement of this transaction has these words in it."""
        return any(words in statement for statement in self.in_transaction)


def completes(frame: Frame, command: str) -> bool:
    """Whether the server says that this has been done."""
    return frame.kind == b"C" and frame.body.rstrip(b"\0").decode() == command
