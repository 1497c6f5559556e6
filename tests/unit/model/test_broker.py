"""Addresses of brokers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.model.broker import BrokerKind, kind_of, name_at_broker, shown, transports_of
from foliot.model.policy import Priority


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("database", BrokerKind.DATABASE),
        ("celery", BrokerKind.CELERY),
        ("amqp://host/", BrokerKind.RABBITMQ),
        ("amqps://user:password@host:5671/vhost", BrokerKind.RABBITMQ),
        ("kafka://one:9092,two:9092", BrokerKind.KAFKA),
        ("redis://host:6379/0", BrokerKind.REDIS),
        ("nats://host:4222", BrokerKind.NATS),
    ],
)
def test_the_scheme_says_which_broker_it_is(address: str, kind: BrokerKind) -> None:
    assert kind_of(address) is kind


@pytest.mark.parametrize("address", ["", "rabbit", "http://host", "amqp:", "amqp://", "AMQP", "kafka"])
def test_what_names_no_broker_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(ValueError, match="names no broker; right would be amqp://") as caught:
        kind_of(address)
    assert not address or f"'{address}'" not in str(caught.value)


def test_one_address_is_for_all_priorities() -> None:
    assert set(transports_of("redis://host:6379/0?a=b").values()) == {"redis://host:6379/0?a=b"}


def test_priorities_that_are_not_named_stay_with_the_database() -> None:
    assert transports_of("high=amqp://host/ ; low=database") == {
        Priority.HIGH: "amqp://host/",
        Priority.MEDIUM: "database",
        Priority.LOW: "database",
    }


@pytest.mark.parametrize(
    "text", ["high=", "high=nothing", "high=database;high=database", "high=database;urgent=database", "low"]
)
def test_a_wrong_mapping_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be like|names"):
        transports_of(text)


def test_a_password_is_not_shown() -> None:
    assert shown("amqp://user:password@host/") == "amqp://host/"


@given(st.text(max_size=30), st.text(max_size=30))
def test_two_names_stay_two_at_the_broker_and_each_can_be_one(one: str, other: str) -> None:
    names = name_at_broker(one), name_at_broker(other)
    assert all(each.isascii() and " " not in each and "/" not in each for each in names)
    if "_" not in one + other:
        assert (names[0] == names[1]) == (one == other)
