"""Send spans to a collector without blocking, through a bounded queue.

A thread of the SDK sends them in batches. While the collector is unreachable, spans wait in the queue. When
it is full, further spans are dropped before they are built. The log has one line when spans are lost, and one
when sending works again. The exporter's own messages, several per batch, are suppressed.
"""

import logging
import os
import threading
from collections.abc import Sequence

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from foliot.model.errors import SettingError
from foliot.telemetry.answers import wary_session

MAX_WAITING = 8192
CLOSE_S = 3.0
"""How long a stopping process waits for its last spans to be sent."""
_EXPORTERS_LOG = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


class SpanQueue:
    """Queues finished spans without blocking. Drops spans when full. To be used from one thread."""

    def __init__(self, url: str, exporter: SpanExporter | None = None) -> None:
        try:
            self._limit = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") or MAX_WAITING)
            self._watched = _Watched(exporter or OTLPSpanExporter(endpoint=url, session=wary_session()), url)
            self._processor = BatchSpanProcessor(self._watched, max_queue_size=self._limit)
        except ValueError as error:
            raise SettingError(f"the OTEL_* variables can't be used: {error}") from None
        self._put = 0

    @property
    def is_full(self) -> bool:
        return self._put - self._watched.taken >= self._limit

    def put(self, span: ReadableSpan) -> None:
        if self.is_full:
            self.drop(1)
        else:
            self._put += 1
            self._processor.on_end(span)

    def drop(self, count: int) -> None:
        """Count spans that were dropped, or not even built."""
        self._watched.lost += count

    def close(self) -> None:
        """Send the waiting spans. Blocks for a few seconds at most."""
        sending = threading.Thread(target=self._processor.shutdown, name="foliot-last-spans", daemon=True)
        sending.start()
        sending.join(CLOSE_S)
        if sending.is_alive():
            self._watched.give_up(self._put - self._watched.taken)


class _Watched(SpanExporter):
    """Wraps an exporter and logs when it starts or stops losing spans. Runs in the sending thread."""

    def __init__(self, exporter: SpanExporter, url: str) -> None:
        self._exporter = exporter
        self._url = url
        self.taken = 0
        """Number of spans that left the queue."""
        self.lost = 0
        self._is_away = False
        self._is_closed = False
        self._kept_back = _KeptBack()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        with self._kept_back:
            try:
                result = self._exporter.export(spans)
            except Exception as error:
                self._kept_back.said = f"{type(error).__name__}: {error}"
                result = SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            self._tell_back()
        else:
            self.lost += len(spans)
            self._tell_away(self._kept_back.said)
        return result

    def give_up(self, waiting: int) -> None:
        """Count the waiting spans as lost and close the exporter: the time for sending is over."""
        self.lost += waiting
        self._tell_away("it did not take the last spans in time")
        self.shutdown()

    def shutdown(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._exporter.shutdown()

    def _tell_away(self, reason: str) -> None:
        if not self._is_away:
            self._is_away = True
            structlog.get_logger().warning("traces_lost", address=self._url, reason=reason)

    def _tell_back(self) -> None:
        if (self._is_away or self.lost) and not self._is_closed:
            structlog.get_logger().info("traces_sent_again", address=self._url, lost=self.lost)
            self._is_away, self.lost = False, 0


class _KeptBack(logging.Filter):
    """Suppresses the exporter's log records of this thread, and keeps the first one as the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.said = ""
        self._thread = 0

    def __enter__(self) -> None:
        self._thread, self.said = threading.get_ident(), ""
        logging.getLogger(_EXPORTERS_LOG).addFilter(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger(_EXPORTERS_LOG).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        # The first record gives the reason; the following ones only report failed retries.
        self.said = self.said or record.getMessage()
        return False
