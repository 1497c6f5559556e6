"""Arguments for Kafka's clients from `kafka://[user:password@]host:port[,host:port][?tls=on&sasl=…]`."""

import ssl
from typing import Any
from urllib.parse import unquote

from foliot.brokers.broker_address import BrokerAddress
from foliot.model.errors import SettingError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def access_of(address: BrokerAddress) -> dict[str, Any]:
    """Return the keyword arguments of Kafka's clients for an address. Raises SettingError."""
    has_tls = address.is_on("tls", default=False)
    credentials, _, servers = address.parts.netloc.rpartition("@")
    access: dict[str, Any] = {
        "bootstrap_servers": servers.split(","),
        "security_protocol": "SSL" if has_tls else "PLAINTEXT",
    }
    if has_tls:
        access["ssl_context"] = ssl.create_default_context()
    mechanism = address.options.get("sasl", MECHANISMS[0])
    if mechanism not in MECHANISMS:
        raise SettingError(f"{address.setting}: sasl must be one of {', '.join(MECHANISMS)}")
    if credentials:
        user, _, password = credentials.partition(":")
        access |= {
            "security_protocol": "SASL_SSL" if has_tls else "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": unquote(user),
            "sasl_plain_password": unquote(password),
        }
    elif "sasl" in address.options:
        raise SettingError(f"{address.setting}: sasl needs a user and password: kafka://user:password@host")
    return access
