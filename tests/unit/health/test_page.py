"""The page of metrics: in a format that is asked for, and never more often than the process can bear."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from foliot.telemetry.health.metrics_page import MAX_REST_S, MIN_REST, MetricsPage
from foliot.timing.clock import VirtualClock

PLAIN = ""
OPEN = "application/openmetrics-text;version=1.0.0"


class Slow(Collector):
    """Takes its time, and counts how often it was asked."""

    def __init__(self, clock: VirtualClock) -> None:
        self.takes_s = 0.01
        self.count = 0
        self._clock = clock

    def collect(self) -> Iterator[CounterMetricFamily]:
        self.count += 1
        self._clock.advance(self.takes_s)
        yield CounterMetricFamily("asked", "How often", value=self.count)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
def slow(clock: VirtualClock) -> Slow:
    return Slow(clock)


@pytest.fixture
def page(clock: VirtualClock, slow: Slow) -> MetricsPage:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(slow)
    slow.count = 0
    return MetricsPage(registry, clock)


def test_whoever_asks_again_at_once_gets_what_was_just_made(
    page: MetricsPage, slow: Slow, clock: VirtualClock
) -> None:
    first = page.render(PLAIN)
    assert b"asked_total 1.0" in first[0]
    assert [page.render(PLAIN) for _ in range(100)] == [first] * 100
    clock.advance(slow.takes_s * MIN_REST)
    assert b"asked_total 2.0" in page.render(PLAIN)[0]


def test_all_formats_together_take_a_tenth_of_the_time(
    page: MetricsPage, slow: Slow, clock: VirtualClock
) -> None:
    began_at, number = clock.monotonic(), 0
    while clock.monotonic() - began_at < 10:
        for accept in (PLAIN, OPEN, f"application/openmetrics-text;version=1.{number};escaping=dots"):
            page.render(accept)
            number += 1
        clock.advance(0.001)
    assert slow.count * slow.takes_s == pytest.approx(10 / MIN_REST, rel=0.3)


def test_a_process_that_was_stopped_meanwhile_does_not_show_the_past_for_long(
    page: MetricsPage, slow: Slow, clock: VirtualClock
) -> None:
    slow.takes_s = 3600
    page.render(PLAIN)
    clock.advance(MAX_REST_S)
    assert b"asked_total 2.0" in page.render(PLAIN)[0]


@pytest.mark.parametrize("version", ["abc", "1.x.0", "²", "", "99999999999999999999"])
def test_a_version_that_is_none_is_answered_all_the_same(page: MetricsPage, version: str) -> None:
    for kind in ("application/openmetrics-text", "text/plain"):
        assert b"asked_total" in page.render(f"{kind};version={version}")[0]
