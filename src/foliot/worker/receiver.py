"""Receives messages from a broker and lets the worker claim exactly these executions.

The claim in the database decides who runs an execution. Messages are acknowledged after the claim, also those
that claimed nothing because another worker had claimed the execution or it can't be claimed any more. If the
process ends in between, the broker delivers the messages again.
"""

import contextlib
from collections.abc import Sequence

from foliot.model.errors import BrokerUnreachableError
from foliot.model.policy import Priority
from foliot.service import Wake
from foliot.transport.monitored_transport import MonitoredTransport
from foliot.transport.transport_protocol import ExecutionDelivery
from foliot.worker.worker import Worker

MAX_AT_ONCE = 500
WAIT_S = 1.0
"""How long a receive waits for its first message, and so how long it can delay the worker's stop."""
AGAIN_S = 0.5
"""Pause after the broker could not be reached."""
WITHOUT_ROOM_S = 5.0
WITHOUT_QUEUES_S = 0.5


class Receiver:
    """A service that receives messages from one broker. There is one for each broker a worker uses."""

    def __init__(self, worker: Worker, transport: MonitoredTransport, priorities: Sequence[Priority]) -> None:
        self.name = f"receiving ({transport.kind})"
        self.wake = Wake()
        self._worker = worker
        self._transport = transport
        self._priorities = priorities
        worker.on_room(self.wake.set)

    async def step(self) -> float | None:
        worker = self._worker
        if worker.is_draining:
            return None
        if worker.room < 1:
            return WITHOUT_ROOM_S
        broker_queues = await worker.broker_queues(self._priorities)
        if not broker_queues:
            return WITHOUT_QUEUES_S
        try:
            found = await self._transport.receive(
                broker_queues, limit=min(worker.room, MAX_AT_ONCE), wait_s=WAIT_S
            )
        except BrokerUnreachableError:
            # The broker may count as away now: then the worker must poll the database itself.
            worker.wake.set()
            return AGAIN_S
        if found:
            await self._claim(found)
        return 0.0

    async def _claim(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        room = self._worker.room
        wanted, others = deliveries[:room], deliveries[room:]
        try:
            await self._worker.take([each.message.execution_id for each in wanted])
        except BaseException:
            await self._give_back(deliveries)
            raise
        with contextlib.suppress(BrokerUnreachableError):  # they are delivered again, and claim nothing
            await self._transport.acknowledge(wanted)
        await self._give_back(others)

    async def _give_back(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        """Return messages to the broker. If that fails, another receiver gets them after a timeout."""
        if deliveries:
            with contextlib.suppress(BrokerUnreachableError):
                await self._transport.give_back(deliveries)
