"""The HTTP/1 connection: llhttp's strict parser, plus the checks that it leaves to its user."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 128 * 1024
"""Maximum size of request line and headers. The first read from the socket does not count."""


class Http1Connection(HttpToolsProtocol):
    """One connection. It refuses headers that are too large, and requests with two Host headers or none."""

    _head_bytes: int | None = None
    """Received bytes of the current request line and headers. None: none are being received."""

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
            # A proxy in front of us may have used the other Host. An exception here becomes a 400.
            raise ValueError("one Host is needed")
        super().on_headers_complete()
