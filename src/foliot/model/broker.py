"""Addresses of brokers in FOLIOT_TRANSPORT and FOLIOT_RELAY."""

import re
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import urlsplit

from foliot.model.policy import Priority


class BrokerKind(StrEnum):
    DATABASE = "database"
    RABBITMQ = "rabbitmq"
    KAFKA = "kafka"
    REDIS = "redis"
    NATS = "nats"
    CELERY = "celery"


_SCHEMES = {
    "amqp": BrokerKind.RABBITMQ,
    "amqps": BrokerKind.RABBITMQ,
    "kafka": BrokerKind.KAFKA,
    "redis": BrokerKind.REDIS,
    "rediss": BrokerKind.REDIS,
    "nats": BrokerKind.NATS,
    "tls": BrokerKind.NATS,
}
ADDRESSES = "amqp://host:5672/, kafka://host:9092, redis://host:6379/0 or nats://host:4222"
EXTRAS = {
    BrokerKind.RABBITMQ: "rabbitmq",
    BrokerKind.KAFKA: "kafka",
    BrokerKind.REDIS: "redis",
    BrokerKind.NATS: "nats",
    BrokerKind.CELERY: "celery",
}
"""The optional packages (extras) that each broker needs."""


def kind_of(address: str) -> BrokerKind:
    """Return the kind of broker. Raises a ValueError that says what is right, without any password."""
    if address in (BrokerKind.DATABASE, BrokerKind.CELERY):
        return BrokerKind(address)
    parts = urlsplit(address)
    kind = _SCHEMES.get(parts.scheme)
    if kind is None or not parts.netloc:
        raise ValueError(f"names no broker; right would be {ADDRESSES}")
    return kind


def shown(address: str) -> str:
    """Return the address without user and password."""
    return re.sub(r"//[^/@]*@", "//", address)


def transports_of(text: str) -> Mapping[Priority, str]:
    """Parse FOLIOT_TRANSPORT: one address for all priorities, or `high=ADDRESS;low=database`.

    Priorities that are not listed use the database. Raises ValueError.
    """
    first = text.split("=", 1)[0].strip()
    if first not in {each.value for each in Priority}:
        kind_of(text.strip())
        return dict.fromkeys(Priority, text.strip())
    found: dict[Priority, str] = {}
    for part in filter(None, (each.strip() for each in text.split(";"))):
        name, has_address, address = part.partition("=")
        if name.strip() not in {each.value for each in Priority} or not has_address:
            raise ValueError("must be like high=ADDRESS;low=database, with the priorities high, medium, low")
        priority = Priority(name.strip())
        if priority in found:
            raise ValueError(f"names {priority} twice")
        kind_of(address.strip())
        found[priority] = address.strip()
    return {priority: found.get(priority, BrokerKind.DATABASE.value) for priority in Priority}


def name_at_broker(text: str) -> str:
    """Return a topic or queue name that every broker accepts: letters, digits, `.`, `_` and `-`.

    Other characters are written as their hex code between two `_`. So two names become equal only if somebody
    chooses them for that.
    """
    return "".join(
        each if re.match(r"[A-Za-z0-9.-]", each) or each == "_" else f"_{ord(each):x}_" for each in text
    )
