"""How to reach the Kafka that a consumer names: `kafka://[user:password@]host:port[,host:port]`, with
`?tls=on` and `?sasl=SCRAM-SHA-512`."""

import ssl
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from foliot.model.errors import SettingError

OPTIONS = ("tls", "sasl", "transactions", "partitions")
"""The last two are the relay's, which may be given the same address."""


def access_of(address: str) -> dict[str, Any]:
    """Arguments for aiokafka's clients. Raises SettingError."""
    parts = urlsplit(address)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in options:
        if name not in OPTIONS:
            raise SettingError(f"the address of Kafka has a parameter {name}; it takes {', '.join(OPTIONS)}")
    if options.get("tls", "off") not in ("on", "off"):
        raise SettingError("the address of Kafka: tls must be on or off")
    has_tls = options.get("tls") == "on"
    credentials, _, servers = parts.netloc.rpartition("@")
    access: dict[str, Any] = {
        "bootstrap_servers": servers.split(","),
        "security_protocol": "SSL" if has_tls else "PLAINTEXT",
    }
    if has_tls:
        access["ssl_context"] = ssl.create_default_context()
    if credentials:
        user, _, password = credentials.partition(":")
        access |= {
            "security_protocol": "SASL_SSL" if has_tls else "SASL_PLAINTEXT",
            "sasl_mechanism": options.get("sasl", "PLAIN"),
            "sasl_plain_username": unquote(user),
            "sasl_plain_password": unquote(password),
        }
    return access
