"""Metrics of the API: requests by method and status, and their durations."""

from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Histogram

from foliot.model.instance_events import CredentialRefused, RequestAnswered
from foliot.telemetry.dispatch import Dispatch
from foliot.telemetry.instruments import Instruments

ANSWER_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
OTHER = "other"
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Not counted: they are called every few seconds and answered at once, which would distort the metrics."""
_KNOWN = frozenset(status.value for status in HTTPStatus)
_USUAL = (("GET", 200), ("GET", 500), ("POST", 201), ("POST", 500))
"""Exported from the start, so that a rate is correct when the first error occurs."""


class ApiMetrics:
    """Registers handlers that count API events. Labels are bounded: clients can't add values."""

    def __init__(self, observer: Dispatch, registry: CollectorRegistry) -> None:
        make = Instruments(registry)
        self._requests = Counter(
            "foliot_api_requests_total", "Requests answered", ["method", "status_code"], registry=registry
        )
        for method, status in _USUAL:
            self._requests.labels(method, status)
        durations = Histogram(
            "foliot_api_request_duration_seconds",
            "From a request to the first byte of its answer",
            ["method"],
            buckets=ANSWER_BUCKETS_S,
            registry=registry,
        )
        self._durations = {method: durations.labels(method) for method in (*METHODS, OTHER)}
        self._refused = make.counter("credentials_refused", "Requests whose credential was worth nothing")
        observer.on(RequestAnswered, self._request_answered)
        observer.on(CredentialRefused, lambda _: self._refused.inc())

    def _request_answered(self, answered: RequestAnswered) -> None:
        if answered.path in PROBES:
            return
        method = answered.method if answered.method in self._durations else OTHER
        status = answered.status_code if answered.status_code in _KNOWN else OTHER
        self._requests.labels(method, status).inc()
        self._durations[method].observe(answered.duration_s)
