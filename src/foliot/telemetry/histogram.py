"""A Prometheus histogram that takes values in batches.

The client library's histogram locks for each value: 1.4 µs per value, or 4 % of a core at 30,000 fires per
second. Here a value costs 0.05 µs in batches of a thousand.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from threading import Lock

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Buckets:
    """Counts values by bucket."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._lock = Lock()

    def observe(self, values: list[float]) -> None:
        """Add a batch of values; sorts the list in place."""
        # A batch is nearly sorted already. Sorting allows one search per bucket instead of one per value.
        values.sort()
        total = sum(values)
        with self._lock:
            self._sum += total
            below = 0
            for bucket, bound in enumerate(self._bounds):
                up_to = bisect_right(values, bound, below)
                self._counts[bucket] += up_to - below
                below = up_to
            self._counts[-1] += len(values) - below

    def shown(self) -> tuple[list[tuple[str, float]], float]:
        """Return cumulative counts by upper bound, in the client library's format, and the sum of values."""
        with self._lock:
            counts, total = list(accumulate(self._counts)), self._sum
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        return list(zip(names, counts, strict=True)), total


class BatchHistogram(Buckets, Collector):
    """Exports the same output as the client library's histogram."""

    def __init__(self, name: str, text: str, buckets: Sequence[float], registry: CollectorRegistry) -> None:
        super().__init__(buckets)
        self._name = name
        self._text = text
        registry.register(self)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        buckets, total = self.shown()
        yield HistogramMetricFamily(self._name, self._text, buckets=buckets, sum_value=total)


class LabelledHistogram(Collector):
    """A batch histogram with one label that has few values."""

    def __init__(
        self, name: str, text: str, buckets: Sequence[float], label: str, registry: CollectorRegistry
    ) -> None:
        self._name = name
        self._text = text
        self._bounds = tuple(buckets)
        self._label = label
        self._parts: dict[str, Buckets] = {}
        registry.register(self)

    def labelled(self, value: str) -> Buckets:
        """Return the buckets of a label value; create them if needed. They are exported from now on."""
        return self._parts.setdefault(value, Buckets(self._bounds))

    def collect(self) -> Iterator[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._name, self._text, labels=[self._label])
        for value, part in list(self._parts.items()):
            buckets, total = part.shown()
            family.add_metric([value], buckets, total)
        yield family
