"""Opens a transport by its address."""

from foliot.brokers.broker_address import read_address
from foliot.brokers.celery_app import CeleryApp
from foliot.model.broker import EXTRAS, BrokerKind, kind_of
from foliot.model.errors import SettingError
from foliot.timing.clock import Clock
from foliot.transport.celery import CeleryTransport
from foliot.transport.intervals import TransportIntervals
from foliot.transport.transport_protocol import SETTING, Transport


def open_transport(
    address: str, clock: Clock, pace: TransportIntervals, celery: CeleryApp | None = None
) -> Transport:
    """Return a transport that is not connected yet. Raises SettingError: wrong address or missing library."""
    kind = kind_of(address)
    if kind is BrokerKind.CELERY:
        if celery is None:
            raise SettingError("FOLIOT_TRANSPORT=celery needs FOLIOT_CELERY_APP, such as proj.celery:app")
        return CeleryTransport(celery)
    if kind is not BrokerKind.DATABASE:
        read_address(address, SETTING)
    try:
        if kind is BrokerKind.RABBITMQ:
            from foliot.transport.rabbitmq import RabbitTransport

            return RabbitTransport(address)
        if kind is BrokerKind.KAFKA:
            from foliot.transport.kafka import KafkaTransport

            return KafkaTransport(address, clock)
        if kind is BrokerKind.REDIS:
            from foliot.transport.redis import RedisTransport

            return RedisTransport(address, clock, abandoned_s=pace.abandoned_s)
        if kind is BrokerKind.NATS:
            from foliot.transport.nats import NatsTransport

            return NatsTransport(address, clock, abandoned_s=pace.abandoned_s)
    except ImportError as error:
        raise SettingError(
            f"FOLIOT_TRANSPORT names {kind}, which needs a library that is not installed ({error.name}): "
            f'pip install "foliot[{EXTRAS[kind]}]"'
        ) from None
    except ValueError as error:  # redis-py names the option and not its value
        raise SettingError(f"{SETTING}: {error}") from None
    raise SettingError(f"FOLIOT_TRANSPORT: {kind} is not a broker that can be used as a transport")
