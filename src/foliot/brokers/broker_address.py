"""Parses broker addresses: for FOLIOT_TRANSPORT, FOLIOT_RELAY and the consumers' `source`.

An unsupported option is refused. Ignoring it could mean plain text where TLS was asked for.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from foliot.model.broker import BrokerKind, kind_of
from foliot.model.errors import SettingError

CLIENT_OPTIONS: Mapping[BrokerKind, tuple[str, ...]] = {
    BrokerKind.KAFKA: ("tls", "sasl"),
    # Read by aiormq, which silently ignores any other.
    BrokerKind.RABBITMQ: (
        "auth",
        "cafile",
        "capath",
        "cadata",
        "certfile",
        "keyfile",
        "no_verify_ssl",
        "heartbeat",
        "name",
        "timeout",
    ),
    # Read by redis-py. Anything else fails at the first connection.
    BrokerKind.REDIS: (
        "db",
        "protocol",
        "health_check_interval",
        "max_connections",
        "socket_keepalive",
        "ssl_ca_certs",
        "ssl_ca_data",
        "ssl_ca_path",
        "ssl_cert_reqs",
        "ssl_certfile",
        "ssl_check_hostname",
        "ssl_keyfile",
    ),
    BrokerKind.NATS: (),
}
"""The options that the client of each broker reads from the address."""
_HAS_PATH = (BrokerKind.RABBITMQ, BrokerKind.REDIS)
_SWITCH = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


class BrokerAddress(NamedTuple):
    """A checked address."""

    setting: str
    """Name of the setting, for error messages."""
    url: str
    """The address without Foliot's own options, as passed to the client library."""
    options: Mapping[str, str]
    """All options, by name."""

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.url)

    def is_on(self, name: str, *, default: bool) -> bool:
        """Return an on/off option. Raises SettingError."""
        value = self.options.get(name)
        if value is None:
            return default
        if value.lower() not in _SWITCH:
            raise SettingError(f"{self.setting}: {name} must be on or off")
        return _SWITCH[value.lower()]

    def number(self, name: str) -> int | None:
        """Return a positive whole number, or None if the option is missing. Raises SettingError."""
        value = self.options.get(name)
        if value is None:
            return None
        if not value.isdecimal() or not int(value):
            raise SettingError(f"{self.setting}: {name} must be a number of at least 1")
        return int(value)


def read_address(address: str, setting: str, *own: str) -> BrokerAddress:
    """Check an address whose options are Foliot's `own` and the client's. Raises SettingError.

    Error messages repeat no part of the address but option names: a password may be anywhere in it.
    """
    kind = kind_of(address)
    parts = urlsplit(address)
    _require_servers(parts, setting)
    supported = (*CLIENT_OPTIONS[kind], *own)
    options: dict[str, str] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in supported:
            listed = ", ".join(supported) or "none"
            raise SettingError(f"{setting}: unsupported option {name}; supported for {kind}: {listed}")
        if name in options:
            raise SettingError(f"{setting}: option {name} is given twice")
        options[name] = value
    if parts.path not in ("", "/") and kind not in _HAS_PATH:
        raise SettingError(f"{setting}: an address of {kind} has no path; options follow after a ?")
    passed_on = urlencode([(name, value) for name, value in options.items() if name not in own])
    return BrokerAddress(setting, urlunsplit(parts._replace(query=passed_on)), options)


def _require_servers(parts: SplitResult, setting: str) -> None:
    servers = parts.netloc.rpartition("@")[2]
    for server in servers.split(","):
        host, has_port, port = server.rpartition("]")[2].partition(":")
        if not (host or "]" in server) or (has_port and not (port.isdecimal() and int(port) < 65536)):
            raise SettingError(
                f"{setting} has a host without a name or a port that is no number; "
                "in a password, write characters such as / # ? @ as %2F %23 %3F %40"
            )
    if parts.fragment:
        raise SettingError(f"{setting} has a # in it; in a password, write it as %23")
