"""Receives tickets from a broker, and has the worker claim exactly those.

The claim decides. Only then are tickets acknowledged, also those that claimed nothing: another had taken the
execution, or it is not there to be claimed any more. Should the process end in between, they come again.
"""

import contextlib
from collections.abc import Sequence

from foliot.model.policy import Priority
from foliot.service import Wake
from foliot.transport.carrier import Carrier
from foliot.transport.protocol import BrokerUnreachableError, ReceivedTicket
from foliot.worker.worker import Worker

MAX_AT_ONCE = 500
WAIT_S = 1.0
"""How long a receive waits for a first ticket; a worker that stops waits for its end."""
AGAIN_S = 0.5
"""After a broker did not answer."""
WITHOUT_ROOM_S = 5.0
WITHOUT_QUEUES_S = 0.5


class Receiver:
    """A service, one for each broker that a worker takes from."""

    def __init__(self, worker: Worker, carrier: Carrier, priorities: Sequence[Priority]) -> None:
        self.name = f"receiving ({carrier.kind})"
        self.wake = Wake()
        self._worker = worker
        self._carrier = carrier
        self._priorities = priorities
        worker.on_room(self.wake.set)

    async def step(self) -> float | None:
        worker = self._worker
        if worker.is_draining:
            return None
        if worker.room < 1:
            return WITHOUT_ROOM_S
        lanes = await worker.lanes(self._priorities)
        if not lanes:
            return WITHOUT_QUEUES_S
        try:
            found = await self._carrier.receive(lanes, most=min(worker.room, MAX_AT_ONCE), wait_s=WAIT_S)
        except BrokerUnreachableError:
            # It may be time for the worker to look for itself.
            worker.wake.set()
            return AGAIN_S
        if found:
            await self._claim(found)
        return 0.0

    async def _claim(self, deliveries: Sequence[ReceivedTicket]) -> None:
        room = self._worker.room
        wanted, others = deliveries[:room], deliveries[room:]
        try:
            await self._worker.take([each.ticket.execution_id for each in wanted])
        except BaseException:
            await self._give_back(deliveries)
            raise
        with contextlib.suppress(BrokerUnreachableError):  # they come again, and claim nothing
            await self._carrier.acknowledge(wanted)
        await self._give_back(others)

    async def _give_back(self, deliveries: Sequence[ReceivedTicket]) -> None:
        """What can't be given back goes to another when this process has said nothing for a while."""
        if deliveries:
            with contextlib.suppress(BrokerUnreachableError):
                await self._carrier.give_back(deliveries)
