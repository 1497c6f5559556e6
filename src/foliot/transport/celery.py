"""Publishes messages as calls of the task `foliot.execute` in a user's Celery application.

Celery's own workers receive them (`foliot.contrib.celery`). This side only publishes. A message's task id is
the execution's id. A duplicate or late message finds nothing to claim.
"""

import asyncio
from collections.abc import Sequence

from foliot.brokers.celery_app import CeleryApp, CeleryCall, CeleryRefusedError, CeleryUnreachableError
from foliot.model.errors import BrokerUnreachableError
from foliot.transport.transport_protocol import BrokerQueue, ExecutionDelivery, ExecutionMessage

TASK = "foliot.execute"
EXPIRES_S = 3600.0
"""Lifetime of a message. Unclaimed executions are published again anyway, so workers that come back must not
find a backlog of old messages."""


class CeleryTransport:
    """Publishes messages. The Celery application decides to which of its queues they go."""

    name = "celery"

    def __init__(self, celery: CeleryApp) -> None:
        self._celery = celery

    async def publish(self, messages: Sequence[ExecutionMessage]) -> None:
        queues = {each: self._celery.queue_of(each) for each in {message.queue for message in messages}}
        missing = {queue for queue in queues.values() if not self._celery.has_queue(queue)}
        calls = [
            _call(message, queues[message.queue])
            for message in messages
            if queues[message.queue] not in missing
        ]
        try:
            await (self._celery.send(calls) if calls else self._celery.reach())
        except (CeleryUnreachableError, CeleryRefusedError) as error:
            raise BrokerUnreachableError(str(error)) from None
        if missing:
            # Only the messages of the missing queues are not sent.
            raise BrokerUnreachableError(
                f"Celery has no queue {', '.join(sorted(missing))}: see foliot_queues"
            )

    async def receive(
        self,
        broker_queues: Sequence[BrokerQueue],  # noqa: ARG002
        *,
        limit: int,  # noqa: ARG002
        wait_s: float,
    ) -> list[ExecutionDelivery]:
        """Return nothing after `wait_s`: Celery's workers receive the messages."""
        await asyncio.sleep(wait_s)
        return []

    async def acknowledge(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        """Do nothing: this transport receives no messages."""

    async def give_back(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        """Do nothing: this transport receives no messages."""

    async def close(self) -> None:
        """Do nothing: the code that opened the Celery application closes it."""


def _call(message: ExecutionMessage, queue: str) -> CeleryCall:
    execution_id = str(message.execution_id)
    return CeleryCall(
        TASK,
        execution_id,
        [execution_id],
        queue=queue,
        priority=message.priority,
        expires_s=EXPIRES_S,
        keeps_result=False,
        traceparent=message.traceparent,
    )
