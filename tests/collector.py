"""A collector of OpenTelemetry spans: a real HTTP server that accepts OTLP and stores the spans."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

SERVER_ERROR = 500


class Span(NamedTuple):
    """A span as it arrived; ids are hex."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    error: str | None
    service: dict[str, Any]
    """The attributes of the process that sent the span."""

    @property
    def context(self) -> tuple[str, str]:
        return self.trace_id, self.span_id


class Collector:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests = 0
        self.refuses_with: int | None = None
        self._spans: list[Span] = []
        self._lock = threading.Lock()

    def spans(self, trace_id: str | None = None, name: str | None = None) -> list[Span]:
        with self._lock:
            return [
                each
                for each in self._spans
                if trace_id in (None, each.trace_id) and name in (None, each.name)
            ]

    def take(self, path: str, body: bytes) -> int:
        """Store the spans of a request. Return the status of the answer."""
        with self._lock:
            self.requests += 1
            if self.refuses_with is not None:
                return self.refuses_with
            if path != "/v1/traces":
                return 404
            self._spans += _read(ExportTraceServiceRequest.FromString(body))
            return 200


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector on its own port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    collector = _Handler.collectors[server] = Collector(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    collectors: dict[Any, Collector] = {}  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(self.collectors[self.server].take(self.path, body))
        self.send_header("Content-Type", "application/x-protobuf")
        self.end_headers()
        self.wfile.write(ExportTraceServiceResponse().SerializeToString())

    def log_message(self, *_arguments: Any) -> None:
        """Do nothing: requests are not logged."""


def _read(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for of_process in request.resource_spans:
        service = _values(of_process.resource.attributes)
        for of_scope in of_process.scope_spans:
            for each in of_scope.spans:
                yield Span(
                    each.name,
                    each.trace_id.hex(),
                    each.span_id.hex(),
                    each.parent_span_id.hex(),
                    each.start_time_unix_nano,
                    each.end_time_unix_nano,
                    _values(each.attributes),
                    [(link.trace_id.hex(), link.span_id.hex()) for link in each.links],
                    each.status.message if each.status.code == each.status.STATUS_CODE_ERROR else None,
                    service,
                )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
