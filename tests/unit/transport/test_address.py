"""Broker addresses are read in one place: an option that is not supported is refused, never ignored."""

from types import SimpleNamespace

import pytest

from foliot.brokers.broker_address import read_address
from foliot.brokers.kafka_settings import access_of
from foliot.model.errors import SettingError
from foliot.outbox.consumers import open_consumer
from foliot.outbox.handlers import ConsumerSpec, EventTransaction
from foliot.outbox.open_publisher import open_publisher
from foliot.timing.clock import SystemClock
from foliot.transport.intervals import TransportIntervals
from foliot.transport.kafka import KafkaTransport
from foliot.transport.open_transport import open_transport

PACE = TransportIntervals(patience_s=5.0)
CLOCK = SystemClock()


def transport_of(address: str) -> None:
    open_transport(address, CLOCK, PACE)


def consumer_of(address: str) -> None:
    async def handle(_transaction: EventTransaction) -> None: ...

    spec = ConsumerSpec(group="billing", handler=handle, topics=("orders",), source=address)
    consumers = SimpleNamespace(dialect=None, dead_letters=None)
    open_consumer(spec, consumers, CLOCK, None, None, poll_s=1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("reader", [transport_of, open_publisher])
@pytest.mark.parametrize(
    ("address", "option"),
    [
        ("kafka://user:hunter2@broker:9092?security_protocol=SASL_SSL", "security_protocol"),
        ("kafka://user:hunter2@broker:9092?ssl=on", "ssl"),
        ("kafka://user:hunter2@broker:9092?sasl_mechanism=SCRAM-SHA-512", "sasl_mechanism"),
        ("amqps://user:hunter2@broker?cacertfile=/ca.pem", "cacertfile"),
        ("rediss://:hunter2@broker?ssl_ca=/ca.pem", "ssl_ca"),
        ("nats://user:hunter2@broker:4222?tls=on", "tls"),
    ],
)
def test_an_unsupported_option_is_refused_with_the_supported_ones(reader, address, option) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SettingError, match=rf"unsupported option {option}; supported for ") as refused:
        reader(address)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("reader", [transport_of, open_publisher, consumer_of])
@pytest.mark.parametrize(
    "query",
    [
        "?acks=1",
        "?tls=yes",
        "?tls=on&tls=off",
        "?sasl=GSSAPI",
        "/topic",
        "?tls=on#fragment",
    ],
)
def test_kafka_is_never_spoken_to_in_another_way_than_asked_for(reader, query) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SettingError):
        reader(f"kafka://user:secret@broker:9092{query}")


def test_a_mechanism_without_a_user_is_refused() -> None:
    with pytest.raises(SettingError, match="sasl needs a user and password"):
        transport_of("kafka://broker:9092?sasl=SCRAM-SHA-512")


@pytest.mark.parametrize("tls", ["on", "true", "1"])
def test_kafka_as_transport_uses_tls_and_the_named_mechanism(tls: str) -> None:
    """It fell back to PLAIN whatever was asked for."""
    transport = KafkaTransport(f"kafka://user:p%40ss@one:9092,two:9092?tls={tls}&sasl=SCRAM-SHA-512", CLOCK)
    assert transport._access["security_protocol"] == "SASL_SSL"
    assert transport._access["sasl_mechanism"] == "SCRAM-SHA-512"
    assert transport._access["sasl_plain_password"] == "p@ss"
    assert transport._access["bootstrap_servers"] == ["one:9092", "two:9092"]


def test_without_options_kafka_is_plain_text() -> None:
    access = access_of(read_address("kafka://broker:9092", "FOLIOT_TRANSPORT"))
    assert access == {"bootstrap_servers": ["broker:9092"], "security_protocol": "PLAINTEXT"}


def test_a_wrong_value_of_a_redis_option_is_a_setting_error() -> None:
    with pytest.raises(SettingError, match=r"FOLIOT_TRANSPORT.*'protocol'"):
        transport_of("redis://broker?protocol=abc")


def test_a_consumer_takes_the_address_of_the_relay() -> None:
    consumer_of("kafka://user:secret@broker:9092?tls=on&sasl=SCRAM-SHA-512&transactions=off&partitions=6")
