"""Which executions a worker looks for in the database itself, when brokers carry some of them to it.

Of the priorities that the database carries, everything, as often as the pace says. Of those of a broker, only
what has been left lying, now and then, since a ticket may be lost; everything, while that broker is away.
"""

from collections.abc import Mapping

from foliot.model.policy import Priority
from foliot.store.protocol import ClaimScope
from foliot.timing.clock import ClusterClock
from foliot.transport.carrier import Carrier
from foliot.transport.pace import TransportPace


class Reach:
    def __init__(
        self, carriers: Mapping[Priority, Carrier], clock: ClusterClock, pace: TransportPace
    ) -> None:
        self._carriers = carriers
        self._clock = clock
        self._pace = pace
        self._safety_at = float("-inf")

    def scope(self) -> ClaimScope | None:
        """What to claim now; None: whatever there is."""
        at_once = self._at_once()
        if len(at_once) == len(Priority):
            return None
        is_time = self._clock.monotonic() >= self._safety_at
        return ClaimScope(at_once, self._pace.untaken_s if is_time else None)

    def looked(self, scope: ClaimScope | None, *, has_plenty: bool) -> None:
        """A claim of this scope has been made; with plenty there is more where it came from."""
        if scope is not None and scope.others_after_s is not None:
            pause_s = 0.0 if has_plenty else self._pace.safety_s
            self._safety_at = self._clock.monotonic() + pause_s

    def pause_s(self, poll_s: float) -> float:
        """Until the next look, of a worker that would look so often."""
        at_once = self._at_once()
        if len(at_once) == len(Priority):
            return poll_s
        safety_s = max(0.0, self._safety_at - self._clock.monotonic())
        return min(poll_s, safety_s) if at_once else safety_s

    def _at_once(self) -> tuple[Priority, ...]:
        return tuple(each for each in Priority if each not in self._carriers or self._carriers[each].is_away)
