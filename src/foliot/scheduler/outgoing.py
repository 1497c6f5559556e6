"""Tickets on their way to one broker."""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from foliot.service import Wake
from foliot.transport.carrier import Carrier
from foliot.transport.protocol import BrokerUnreachableError, Ticket

BATCH = 1000
MAX_KEPT = 20_000
AGAIN_S = 0.5
"""After the broker did not answer."""


class Outgoing:
    """A service. Whoever has tickets puts them here and never waits for a broker.

    They are kept while it does not answer for a moment. Those of one that is away are dropped: workers look
    into the database then, and what is still waiting when it comes back is published again by its age.
    """

    def __init__(self, carrier: Carrier) -> None:
        self.name = f"publishing ({carrier.kind})"
        self.wake = Wake()
        self.carrier = carrier
        self._tickets: deque[Ticket] = deque()

    def put(self, tickets: Iterable[Ticket]) -> None:
        if self.carrier.is_away:
            return
        self._tickets.extend(islice(tickets, MAX_KEPT - len(self._tickets)))
        self.wake.set()

    async def step(self) -> float | None:
        if self.carrier.is_away:
            self._tickets.clear()
        if not self._tickets and not self.carrier.is_failing:
            return None
        # Of one that failed it is asked whether it is there again, also when there is nothing to publish.
        batch = list(islice(self._tickets, BATCH))
        try:
            await self.carrier.publish(batch)
        except BrokerUnreachableError:
            return AGAIN_S
        for _ in batch:
            self._tickets.popleft()
        return 0.0 if self._tickets else None
