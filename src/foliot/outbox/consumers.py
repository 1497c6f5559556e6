"""Opens a consumer by the source of its events. Kafka's client is imported only when it is used."""

from typing import Protocol

from foliot.db.hints import Hints
from foliot.model.errors import SettingError
from foliot.model.event import Observer
from foliot.outbox.consumer import Consumer
from foliot.outbox.consumers_sql import Consumers
from foliot.outbox.handlers import ConsumerSpec
from foliot.service import Service
from foliot.timing.clock import Clock


class EventConsumer(Service, Protocol):
    """A service that runs an event handler."""

    async def close(self) -> None:
        """Release events that were claimed and not handled, so that others get them."""
        ...


def open_consumer(
    spec: ConsumerSpec,
    consumers: Consumers,
    clock: Clock,
    hints: Hints,
    observer: Observer,
    *,
    poll_s: float,
) -> EventConsumer:
    """Return a consumer that is not connected yet. Raises SettingError."""
    if spec.is_of_database:
        return Consumer(spec, consumers, clock, hints, observer, poll_s=poll_s)
    try:
        from foliot.outbox.kafka_consumer import KafkaConsumer
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foliot"):
            raise
        raise SettingError(
            f"group {spec.group} reads from Kafka, whose client is not installed: "
            f'pip install "foliot[kafka]" (it lacks {error.name})'
        ) from None
    return KafkaConsumer(spec, consumers, clock, observer)
