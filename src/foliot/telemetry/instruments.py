"""Create Foliot's metrics: with a common prefix, and with known label values exported from the start."""

from collections.abc import Iterable
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge

from foliot.telemetry.histogram import BatchHistogram, Buckets, LabelledHistogram

Label = TypeVar("Label", bound=str)
Metric = TypeVar("Metric", Counter, Gauge)


class Instruments:
    """Creates metrics in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, text: str) -> Counter:
        return Counter(f"foliot_{name}_total", text, registry=self._registry)

    def counters(self, name: str, text: str, label: str, values: Iterable[Label]) -> dict[Label, Counter]:
        family = Counter(f"foliot_{name}_total", text, [label], registry=self._registry)
        return {value: family.labels(str(value)) for value in values}

    def counters_by_two(
        self, name: str, text: str, labels: tuple[str, str], first: Iterable[str], second: Iterable[str]
    ) -> dict[tuple[str, str], Counter]:
        """Return one counter for each pair of label values."""
        family = Counter(f"foliot_{name}_total", text, labels, registry=self._registry)
        pairs = [(str(one), other) for one in first for other in tuple(second)]
        return {pair: family.labels(*pair) for pair in pairs}

    def gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"foliot_{name}", text, registry=self._registry)

    def by(self, label: str, kind: type[Metric], name: str, text: str) -> Metric:
        """Return a metric with a label whose values are not known in advance. There must be few of them."""
        return kind(f"foliot_{name}", text, [label], registry=self._registry)

    def batches_by(
        self, label: str, values: Iterable[Label], name: str, text: str, buckets: tuple[float, ...]
    ) -> dict[Label, Buckets]:
        """Return one histogram for each label value."""
        family = LabelledHistogram(f"foliot_{name}", text, buckets, label, self._registry)
        return {value: family.labelled(str(value)) for value in values}

    def batches(self, name: str, text: str, buckets: tuple[float, ...]) -> BatchHistogram:
        return BatchHistogram(f"foliot_{name}", text, buckets, self._registry)
