"""Where events are shipped to: read once at start, what is wrong said without the password."""

import subprocess
import sys

import pytest

from foliot.brokers.broker_address import read_address
from foliot.instance.runtime import Instance
from foliot.instance.settings import Settings, load_settings
from foliot.instance.spec import InstanceRole, InstanceSpec
from foliot.model.errors import SettingError
from foliot.outbox.kafka import KafkaPublisher
from foliot.outbox.nats import NatsPublisher
from foliot.outbox.open_publisher import open_publisher
from foliot.outbox.rabbitmq import RabbitPublisher
from foliot.outbox.redis import RedisPublisher


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("amqp://guest:guest@localhost:5672/", RabbitPublisher),
        ("amqps://localhost/vhost?queues=off&heartbeat=10", RabbitPublisher),
        ("kafka://localhost:9092,other:9092?transactions=off", KafkaPublisher),
        ("kafka://user:p%40ss@[::1]:9092?tls=on&sasl=SCRAM-SHA-512&partitions=6", KafkaPublisher),
        ("redis://localhost:6379/0?maxlen=1000", RedisPublisher),
        ("rediss://:secret@localhost", RedisPublisher),
        ("nats://localhost:4222,other:4222", NatsPublisher),
        ("tls://localhost:4222", NatsPublisher),
    ],
)
def test_each_address_has_its_publisher(address: str, kind: type) -> None:
    assert isinstance(open_publisher(address), kind)


@pytest.mark.parametrize(
    "address",
    [
        "kafka://localhost:9092?transactions=maybe",
        "kafka://localhost:9092?acks=1",
        "kafka://localhost:9092?partitions=0",
        "kafka://localhost:9092,:9093",
        "redis://localhost?maxlen=-1",
        "redis://localhost:port",
        "amqp://localhost?queues=no",
        "nats://localhost?stream=mine",
    ],
)
def test_what_makes_no_sense_is_refused_at_start(address: str) -> None:
    with pytest.raises(SettingError, match="FOLIOT_RELAY"):
        open_publisher(address)


@pytest.mark.parametrize("address", ["celery", "database", "http://localhost", "kafka", "redis://"])
def test_what_is_no_broker_is_no_relay(address: str) -> None:
    with pytest.raises(SettingError, match="FOLIOT_RELAY"):
        load_settings(relay=address)


@pytest.mark.parametrize(
    "address",
    ["http://user:hunter2@localhost", "redis://user:hunter2/@localhost", "amqp://user:hunter2#@localhost:1"],
)
def test_a_password_is_never_told(address: str) -> None:
    with pytest.raises(SettingError) as refused:
        open_publisher(load_settings(relay=address).relay.get_secret_value())  # type: ignore[union-attr]
    assert "hunter2" not in str(refused.value)


def test_a_relays_address_is_not_shown_with_the_settings() -> None:
    assert "hunter2" not in repr(load_settings(relay="redis://user:hunter2@localhost"))


def test_foliots_own_parameters_are_not_passed_on() -> None:
    read = read_address("redis://h/0?maxlen=5&db=1", "FOLIOT_RELAY", "maxlen")
    assert (read.url, read.number("maxlen")) == ("redis://h/0?db=1", 5)


def test_a_client_that_is_not_installed_is_named_by_its_extra() -> None:
    """In a process of its own, where nothing of it was imported before."""
    program = (
        "import sys; sys.modules['aio_pika'] = None\n"
        "from foliot.outbox.open_publisher import open_publisher\n"
        "from foliot.model.errors import SettingError\n"
        "try: open_publisher('amqp://localhost')\n"
        "except SettingError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 'pip install "foliot[rabbitmq]"' in done.stdout


def test_no_client_is_imported_for_the_sake_of_another() -> None:
    program = (
        "import sys, foliot.instance.runtime\n"
        "print([name for name in ('aio_pika', 'aiokafka', 'nats', 'celery') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_process_of_several_roles_is_a_relay_only_where_it_is_told_what_to_ship_to() -> None:
    without = Instance(InstanceSpec(settings=Settings(database_url="memory"), roles=frozenset(InstanceRole)))
    assert InstanceRole.RELAY not in without.roles
    assert without.relay is None
    await without.close()
    settings = Settings(database_url="memory", relay="redis://localhost")
    with_one = Instance(InstanceSpec(settings=settings, roles=frozenset(InstanceRole)))
    assert with_one.record().roles == ("api", "relay", "scheduler", "worker")
    assert with_one.relay in with_one.services
    await with_one.close()


def test_a_relay_alone_wants_to_know_what_to_ship_to() -> None:
    with pytest.raises(SettingError, match="FOLIOT_RELAY is not set"):
        Instance(
            InstanceSpec(settings=Settings(database_url="memory"), roles=frozenset({InstanceRole.RELAY}))
        )
