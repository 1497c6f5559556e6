"""Opens a publisher by the address of its broker. A client library is imported only when it is used."""

from foliot.model.broker import EXTRAS, BrokerKind, kind_of
from foliot.model.errors import SettingError
from foliot.outbox.publisher import Publisher

RELAYED = (BrokerKind.RABBITMQ, BrokerKind.KAFKA, BrokerKind.REDIS, BrokerKind.NATS)
"""The kinds of brokers that the relay can publish to."""


def open_publisher(address: str) -> Publisher:
    """Return a publisher that is not connected yet. Raises SettingError."""
    kind = kind_of(address)
    try:
        return _publisher(kind, address)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foliot"):
            raise
        extra = EXTRAS[kind]
        raise SettingError(
            f"FOLIOT_RELAY names {kind}, whose client is not installed: "
            f'pip install "foliot[{extra}]" (it lacks {error.name})'
        ) from None


def _publisher(kind: BrokerKind, address: str) -> Publisher:
    match kind:
        case BrokerKind.RABBITMQ:
            from foliot.outbox.rabbitmq import RabbitPublisher

            return RabbitPublisher(address)
        case BrokerKind.KAFKA:
            from foliot.outbox.kafka import KafkaPublisher

            return KafkaPublisher(address)
        case BrokerKind.REDIS:
            from foliot.outbox.redis import RedisPublisher

            return RedisPublisher(address)
        case BrokerKind.NATS:
            from foliot.outbox.nats import NatsPublisher

            return NatsPublisher(address)
        case _:
            raise SettingError(f"FOLIOT_RELAY: {kind} is nothing that events are shipped to")
