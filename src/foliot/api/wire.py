"""HTTP as it comes off the wire: llhttp's parser, which is strict, and what it leaves to its user."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 128 * 1024
"""Of a request line and headers, after the read of the socket that they began with."""


class Wire(HttpToolsProtocol):
    """One connection. A head without end is refused, and one that names two hosts, or none."""

    _head_bytes: int | None = None
    """How much of a head has come; None while none is coming."""

    def data_received(self, data: bytes) -> None:
        before = self._head_bytes
        super().data_received(data)
        if before is None or self._head_bytes is None or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self.send_400_response("Request head is too large.")

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        hosts = sum(name == b"host" for name, _value in self.headers)
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() != "1.0"):
            # Whoever stands before us may have chosen the other one. What is raised here is answered by 400.
            raise ValueError("one Host is needed")
        super().on_headers_complete()
