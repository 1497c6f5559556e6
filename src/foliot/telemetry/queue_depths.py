"""Queue depths as metrics, with a bounded number of series for any number of queues."""

from collections.abc import Iterator, Mapping
from threading import Lock

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from foliot.model.event import QueuesMeasured
from foliot.model.policy import Priority

MAX_QUEUES = 100
DEFAULT = "default"
OTHER = "other"
_EMPTY = dict.fromkeys(Priority, 0)


class QueueDepths(Collector):
    """Exports the last measured queue depths.

    The queue `default` is always exported: with zeros before the first measurement and in processes that do
    not measure. The maximum over all instances is therefore correct.

    An empty queue is exported with zeros, a removed one not at all. Beside `default`, at most a hundred
    queues are exported. Queues that are exported stay so, the deepest of the rest fill free places, and all
    others are summed as `other`.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._shown: dict[str, Mapping[Priority, int]] = {DEFAULT: _EMPTY}
        self._lock = Lock()
        registry.register(self)

    def measured(self, measured: QueuesMeasured) -> None:
        depths = dict(measured.depths)
        always = {DEFAULT: depths.pop(DEFAULT, _EMPTY)}
        with self._lock:
            stay = [queue for queue in self._shown if queue in depths and queue != OTHER]
            newcomers = sorted(
                (queue for queue in depths if queue not in self._shown and queue != OTHER),
                key=lambda queue: -sum(depths[queue].values()),
            )
            shown = {queue: depths.pop(queue) for queue in [*stay, *newcomers][:MAX_QUEUES]}
            if depths:
                shown[OTHER] = {
                    priority: sum(depth.get(priority, 0) for depth in depths.values())
                    for priority in Priority
                }
            self._shown = always | shown

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "foliot_queue_depth",
            "Executions that are ready and wait for a worker, in the whole database",
            labels=["queue", "priority"],
        )
        with self._lock:
            shown = dict(self._shown)
        for queue, depth in sorted(shown.items()):
            for priority, count in depth.items():
                family.add_metric([queue, priority.value], count)
        yield family
