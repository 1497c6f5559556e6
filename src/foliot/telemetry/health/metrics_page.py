"""The metrics page, cached to limit its cost.

It is rendered on the event loop that does the work, and takes 8 ms with a hundred queues. Frequent requests
get a cached page, so that rendering takes at most about a tenth of the time.
"""

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from foliot.timing.clock import Clock, SystemClock

MIN_REST = 10
"""A page is cached for at least this many times its rendering time, up to `MAX_REST_S`."""
MAX_REST_S = 1.0
MAX_FORMATS = 4
"""Maximum number of cached formats: clients choose the version in the media type freely."""


class MetricsPage:
    def __init__(self, registry: CollectorRegistry, clock: Clock | None = None) -> None:
        self._registry = registry
        self._clock = clock or SystemClock()
        self._kept: dict[str, bytes] = {}
        """Cached pages by media type."""
        self._rests_until = 0.0

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics in the requested format, and its media type. May be cached for up to 1 s."""
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):
            # The library fails on a version that is no number, such as `abc`.
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
            # Added up, so that requesting one format after the other does not bypass the limit.
            rests_until = max(now, self._rests_until) + MIN_REST * (now - began_at)
            self._rests_until = min(rests_until, now + MAX_REST_S)
        return content, content_type
