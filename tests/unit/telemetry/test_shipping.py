"""A collector that is away costs nobody anything: it is told once, and what does not fit is dropped."""

import logging
import socketserver
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, TraceFlags
from structlog.testing import capture_logs
from structlog.typing import EventDict
from tests.collector import Collector, collecting
from tests.servers import free_port

from foliot.model.errors import SettingError
from foliot.telemetry import shipping
from foliot.telemetry.shipping import SpanQueue

WITHIN_S = 30.0


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(autouse=True)
def _soon_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")


def span(number: int = 1) -> ReadableSpan:
    context = SpanContext(number, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return ReadableSpan("fire", context, resource=Resource({}), start_time=1, end_time=2)


class Held(SpanExporter):
    """Sends nothing until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.has_begun = threading.Event()
        self.sent = 0
        self.is_shut = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.has_begun.set()
        assert self.go.wait(WITHIN_S)
        self.sent += len(spans)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.is_shut = True


def wait_for(entries: list[EventDict], event: str, count: int = 1) -> None:
    ends = time.monotonic() + WITHIN_S
    while [entry["event"] for entry in entries].count(event) < count:
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.005)


def test_spans_that_wait_when_a_process_stops_are_sent(collector: Collector) -> None:
    sending = SpanQueue(f"{collector.url}/v1/traces")
    for number in range(1, 1001):
        sending.put(span(number))
    sending.close()
    assert len({each.trace_id for each in collector.spans()}) == 1000


def test_what_does_not_fit_is_dropped_and_never_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "600")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "100")
    held = Held()
    with capture_logs() as entries:
        sending = SpanQueue("http://nowhere", held)
        sending.put(span())
        assert held.has_begun.wait(WITHIN_S)
        for number in range(1, 5001):
            sending.put(span(number))
        assert sending.is_full
        held.go.set()
        wait_for(entries, "traces_sent_again")
        sending.close()
    assert held.sent == 601
    assert [(entry["event"], entry["lost"]) for entry in entries] == [("traces_sent_again", 4400)]


def test_a_collector_that_refuses_or_is_away_is_told_once_and_so_is_its_return(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.refuses_with = 400
    url = f"{collector.url}/v1/traces"
    with capture_logs() as entries, caplog.at_level(logging.DEBUG):
        sending = SpanQueue(url)
        for number in range(1, 6):
            sending.put(span(number))
            ends = time.monotonic() + WITHIN_S
            while collector.requests < number:
                assert time.monotonic() < ends, "waited in vain"
                time.sleep(0.005)
        wait_for(entries, "traces_lost")
        collector.refuses_with = None
        sending.put(span(6))
        wait_for(entries, "traces_sent_again")
        sending.close()
    assert [entry["event"] for entry in entries] == ["traces_lost", "traces_sent_again"]
    assert (entries[0]["log_level"], entries[0]["address"]) == ("warning", url)
    assert "400" in entries[0]["reason"]
    assert entries[1]["lost"] == 5
    assert [each.trace_id for each in collector.spans()] == [f"{6:032x}"]
    said = [record for record in caplog.records if record.name.startswith("opentelemetry")]
    assert said == []


@contextmanager
def answering(*parts: bytes, is_endless: bool = False) -> Iterator[str]:
    """The address of a server that answers all with these bytes, the last of them for ever."""
    has_ended = threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.recv(65536)
                for part in parts:
                    self.wfile.write(part)
                while is_endless and not has_ended.is_set():
                    self.wfile.write(parts[-1])

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
        finally:
            has_ended.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ((b"HTTP/1.1 301 Moved\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n",), "301"),
        ((b"SSH-2.0-somebody else\r\n",), "SSH-2.0"),
        ((b"HTTP/1.1 400 No\r\n\r\n", bytes(2**16)), "400"),
        (
            (b"HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + bytes(4096) + b"\r\n"),
            "400",
        ),
    ],
)
def test_an_answer_that_makes_no_sense_or_has_no_end_is_a_loss_and_is_not_read_for_ever(
    monkeypatch: pytest.MonkeyPatch, parts: tuple[bytes, ...], reason: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "3")  # so that it is not tried for long
    with capture_logs() as entries, answering(*parts, is_endless=len(parts) > 1) as url:
        sending = SpanQueue(url)
        sending.put(span())
        wait_for(entries, "traces_lost")
        sending.close()
    assert reason in entries[0]["reason"]


def test_only_what_is_said_of_our_own_spans_is_kept_back(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    """An application in the same process may send spans too, and wants to know."""
    collector.refuses_with = 400
    held = Held()
    ours = SpanQueue("http://nowhere", held)
    ours.put(span())
    assert held.has_begun.wait(WITHIN_S)
    theirs = OTLPSpanExporter(endpoint=f"{collector.url}/v1/traces")
    theirs.export([span()])
    assert [record.name for record in caplog.records] == [OTLPSpanExporter.__module__]
    held.go.set()
    ours.close()
    theirs.shutdown()  # type: ignore[no-untyped-call]


def test_who_stops_waits_only_so_long_for_a_collector_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "CLOSE_S", 0.2)
    held = Held()
    with capture_logs() as entries:
        sending = SpanQueue("http://nowhere", held)
        sending.put(span())
        assert held.has_begun.wait(WITHIN_S)
        sending.close()
    assert held.is_shut
    assert [entry["event"] for entry in entries] == ["traces_lost"]
    held.go.set()


def test_nobody_waits_for_a_collector_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "CLOSE_S", 0.2)
    with capture_logs() as entries:
        sending = SpanQueue(f"http://127.0.0.1:{free_port()}/v1/traces")
        sending.put(span())
        sending.close()
    assert [entry["event"] for entry in entries] == ["traces_lost"]


def test_variables_that_make_no_sense_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "many")
    with pytest.raises(SettingError, match="OTEL_"):
        SpanQueue("http://nowhere", Held())
