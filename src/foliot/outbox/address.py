"""What Foliot reads of a broker's address; the rest of it is the client's."""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from foliot.model.errors import SettingError


def take_options(address: str, *names: str) -> tuple[str, dict[str, str]]:
    """The address without these parameters, and their values."""
    parts = urlsplit(address)
    given = parse_qsl(parts.query, keep_blank_values=True)
    rest = [(name, value) for name, value in given if name not in names]
    bare = urlunsplit(parts._replace(query=urlencode(rest)))
    return bare, {name: value for name, value in given if name in names}


def refuse_options(address: str, *known: str) -> None:
    """For a client that reads no parameters by itself: raises SettingError if some are left."""
    for name, _value in parse_qsl(urlsplit(address).query, keep_blank_values=True):
        raise SettingError(f"FOLIOT_RELAY has a parameter {name}; it takes {', '.join(known) or 'none'}")


def require_ports(address: str) -> None:
    """Raises SettingError, which repeats nothing: what stands where a port should may be half a password."""
    servers = urlsplit(address).netloc.rpartition("@")[2]
    for server in servers.split(","):
        host, has_port, port = server.rpartition("]")[2].partition(":")
        if not (host or "]" in server) or (has_port and not (port.isdecimal() and int(port) < 65536)):
            raise SettingError(
                "FOLIOT_RELAY has a host without a name or a port that is no number; "
                "in a password, write characters such as / # ? @ as %2F %23 %3F %40"
            )


def is_on(options: dict[str, str], name: str, *, default: bool) -> bool:
    """Raises SettingError."""
    value = options.get(name)
    if value not in (None, "on", "off"):
        raise SettingError(f"FOLIOT_RELAY: {name} must be on or off")
    return default if value is None else value == "on"


def number_in(options: dict[str, str], name: str) -> int | None:
    """Raises SettingError."""
    value = options.get(name)
    if value is None:
        return None
    if not value.isdecimal() or not int(value):
        raise SettingError(f"FOLIOT_RELAY: {name} must be a number of at least 1")
    return int(value)
