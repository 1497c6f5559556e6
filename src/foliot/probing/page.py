"""The page of metrics, made no more often than the process can bear.

It is made on the loop that does the work, and takes 8 ms with a hundred queues. Whoever asks again and again
gets what others got a moment ago: all of them together take about a tenth of the time, and no more.
"""

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from foliot.timing.clock import Clock, SystemClock

MIN_REST = 10
"""How many times as long as it took."""
MAX_REST_S = 1.0
MAX_FORMATS = 4
"""At once: a version is whatever somebody says, and told back to them in the media type."""


class MetricsPage:
    def __init__(self, registry: CollectorRegistry, clock: Clock | None = None) -> None:
        self._registry = registry
        self._clock = clock or SystemClock()
        self._kept: dict[str, bytes] = {}
        """By media type."""
        self._rests_until = 0.0

    def render(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that is asked for, and its media type; as they are, or were just now."""
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):
            # Of a version such as `abc` the library makes no number, and then compares it with one.
            encode, content_type = choose_encoder("")
        began_at = self._clock.monotonic()
        if began_at >= self._rests_until:
            self._kept.clear()
        if content_type not in self._kept and len(self._kept) >= MAX_FORMATS:
            encode, content_type = choose_encoder("")
        content = self._kept.get(content_type)
        if content is None:
            content = self._kept[content_type] = encode(self._registry)
            now = self._clock.monotonic()
            # Added up, so that asking for one format after the other is no way around it.
            rests_until = max(now, self._rests_until) + MIN_REST * (now - began_at)
            self._rests_until = min(rests_until, now + MAX_REST_S)
        return content, content_type
