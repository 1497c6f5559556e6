"""Queue of messages to be published to one broker."""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from foliot.model.errors import BrokerUnreachableError
from foliot.service import Wake
from foliot.transport.monitored_transport import MonitoredTransport
from foliot.transport.transport_protocol import ExecutionMessage

BATCH = 1000
MAX_KEPT = 20_000
AGAIN_S = 0.5
"""Pause after the broker did not answer."""


class Outgoing:
    """A service that publishes messages, so that their senders never wait for a broker.

    Messages are queued while the broker does not answer for a moment. If it is away they are dropped: workers
    then poll the database. When it is back, executions still waiting are published again by their age.
    """

    def __init__(self, transport: MonitoredTransport) -> None:
        self.name = f"publishing ({transport.kind})"
        self.wake = Wake()
        self.transport = transport
        self._messages: deque[ExecutionMessage] = deque()

    def put(self, messages: Iterable[ExecutionMessage]) -> None:
        if self.transport.is_away:
            return
        self._messages.extend(islice(messages, MAX_KEPT - len(self._messages)))
        self.wake.set()

    async def step(self) -> float | None:
        if self.transport.is_away:
            self._messages.clear()
        if not self._messages and not self.transport.is_failing:
            return None
        # After a failure an empty batch is published too, to find out whether the broker is back.
        batch = list(islice(self._messages, BATCH))
        try:
            await self.transport.publish(batch)
        except BrokerUnreachableError:
            return AGAIN_S
        for _ in batch:
            self._messages.popleft()
        return 0.0 if self._messages else None
