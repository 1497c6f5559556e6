"""Parses PostgreSQL URLs as libpq does, and connects to their hosts.

    postgresql://user:password@one:5432,two:5432/db?target_session_attrs=read-write
    postgresql:///db?host=/var/run/postgresql
    postgresql://user@host/db?sslmode=verify-full&sslrootcert=/etc/ssl/root.crt&options=-c%20work_mem%3D8MB

asyncpg understands most parameters by itself. This module adds two things: it refuses unknown parameters,
which asyncpg would send to the server as settings, and it gives each of several hosts its own timeout.
"""

import os
import re
import ssl
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import asyncpg
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from foliot.model.errors import SettingError

Host = tuple[str, int | None]

_ADDRESS = re.compile(
    # Passwords may contain / and ?, as in SQLAlchemy.
    r"(?P<start>[\w+]+://(?:[^:/]*(?::[^@]*)?@)?)(?P<hosts>[^/?]*)(?P<rest>.*)\Z",
    re.DOTALL,
)
_ONE_HOST = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^:\[\]]*))(?::(?P<port>\d+))?\Z")

_SYSTEM = "system"
"""Value of sslrootcert for the certificates that the operating system trusts."""
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile")
APPLICATION_NAME = "foliot"
"""Default application_name; the URL may set another."""
_OF_SERVER = ("application_name", "options")
_OF_ASYNCPG = (
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl"),
    *("ssl_min_protocol_version", "ssl_max_protocol_version", "passfile", "krbsrvname"),
)
_OF_ADDRESS = ("host", "port", "user", "password", "dbname")
_CHOICES = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": ("any", "read-write", "read-only", "primary", "standby", "prefer-standby"),
    "channel_binding": ("disable", "prefer"),
    "gssencmode": ("disable", "prefer"),
}
SUPPORTED = (*_OF_ADDRESS, *_OF_ASYNCPG, *_OF_SERVER, *list(_CHOICES)[1:], "connect_timeout")


def parse_postgres_url(url: str, setting: str) -> URL:
    """Parse and check a URL. Several hosts, and unix sockets, become `host` and `port` in its query.

    Raises SettingError, and ArgumentError or ValueError if the text is not a URL.
    """
    match = _ADDRESS.match(url)
    if match is None:
        raise ArgumentError("no URL")
    is_plain = "," not in match["hosts"] and "%" not in match["hosts"]
    parsed = make_url(url if is_plain else match["start"] + match["rest"])
    query = {name: _single(name, value, setting) for name, value in parsed.query.items()}
    if "ssl" in query:
        given = query.pop("ssl")
        query.setdefault("sslmode", "require" if given == "true" else given)
    _check(query, setting)
    if "host" in query:
        hosts = _hosts(query.pop("host").split(","), query.pop("port", ""), setting)
    elif is_plain:
        port = query.pop("port", "") or str(parsed.port or "")
        hosts = _hosts([parsed.host] if parsed.host else [], port, setting)
    else:
        pieces = [unquote(piece) for piece in match["hosts"].split(",")]
        hosts = _hosts(pieces, query.pop("port", ""), setting)
    parsed = parsed.set(
        drivername="postgresql",
        username=query.pop("user", parsed.username),
        password=query.pop("password", parsed.password),
        database=query.pop("dbname", parsed.database),
    )
    return _with_hosts(parsed, hosts, query)


def _single(name: str, value: str | Sequence[str], setting: str) -> str:
    if not isinstance(value, str):
        raise SettingError(f"{setting} has the parameter {name} more than once")
    if not value:
        raise SettingError(f"{setting}: the parameter {name} is empty")
    return value


def _check(query: Mapping[str, str], setting: str) -> None:
    for name, value in query.items():
        if name not in SUPPORTED:
            supported = ", ".join(sorted(SUPPORTED))
            raise SettingError(f"{setting}: unsupported parameter {name}; supported: {supported}")
        if name == "channel_binding" and value == "require":
            raise SettingError(
                f"{setting}: channel_binding=require is not supported by the driver asyncpg; "
                "write channel_binding=prefer, and let sslmode=verify-full with sslrootcert=system "
                "(or the file of a certificate) prove who the server is"
            )
        if name in _CHOICES and value not in _CHOICES[name]:
            raise SettingError(f"{setting}: {name} must be one of {', '.join(_CHOICES[name])}")
        if name == "connect_timeout" and not re.fullmatch(r"\d{1,6}", value):
            raise SettingError(f"{setting}: connect_timeout must be a number of seconds")
        if name in _FILES and value != _SYSTEM and not Path(value).is_file():
            raise SettingError(f"{setting}: {name} names no file: {value}")
    _check_certificates(query, setting)


def _check_certificates(query: Mapping[str, str], setting: str) -> None:
    mode = query.get("sslmode")
    if query.get("sslrootcert") == _SYSTEM:
        if mode not in (None, "verify-full"):
            raise SettingError(f"{setting}: sslrootcert=system needs sslmode=verify-full")
    elif mode in ("verify-ca", "verify-full"):
        is_default = (Path.home() / ".postgresql" / "root.crt").is_file() or "PGSSLROOTCERT" in os.environ
        if "sslrootcert" not in query and not is_default:
            raise SettingError(f"{setting}: sslmode={mode} needs sslrootcert, a file or `system`")


def _hosts(pieces: Sequence[str], ports: str, setting: str) -> list[Host]:
    """Return hosts with their ports. `ports`: separately given ports, one for all hosts or one for each."""
    given = ports.split(",") if ports else []
    if given and len(given) not in (1, len(pieces)):
        raise SettingError(f"{setting} has {len(pieces)} hosts and {len(given)} ports")
    found: list[Host] = []
    for index, piece in enumerate(pieces):
        name, port = _split(piece, setting)
        if given:
            port = _port(given[index if len(given) > 1 else 0], setting)
        found.append((name, port))
    return found


def _split(piece: str, setting: str) -> tuple[str, int | None]:
    if piece.startswith("/") or (piece.count(":") > 1 and "[" not in piece):
        return piece, None  # a unix socket, or an IPv6 address alone
    match = _ONE_HOST.match(piece)
    name = match and (match["v6"] or match["name"])
    if not match or not name:
        raise SettingError(f"{setting} is not a database URL: a host is empty or not a name")
    return name, _port(match["port"], setting) if match["port"] else None


def _port(text: str, setting: str) -> int:
    if not re.fullmatch(r"\d{1,5}", text) or not 0 < int(text) < 65536:
        raise SettingError(f"{setting} is not a database URL: a port must be a number from 1 to 65535")
    return int(text)


def _with_hosts(url: URL, hosts: Sequence[Host], query: dict[str, str]) -> URL:
    if len(hosts) == 1 and not hosts[0][0].startswith("/"):
        return url.set(host=hosts[0][0], port=hosts[0][1], query=query)
    if hosts:
        # An empty port means the default, as in libpq.
        ports = ",".join("" if port is None else str(port) for _, port in hosts)
        query |= {"host": ",".join(name for name, _ in hosts)} | ({"port": ports} if ports.strip(",") else {})
    # SQLAlchemy's URL.set can't remove a host.
    return URL.create("postgresql", url.username, url.password, database=url.database, query=query)


def hosts_of(url: URL) -> list[Host]:
    """Return the hosts of a parsed URL, in order. Empty: use the driver's defaults."""
    if url.host:
        return [(url.host, url.port)]
    names = _text(url, "host").split(",") if "host" in url.query else []
    ports = _text(url, "port").split(",") if "port" in url.query else [""] * len(names)
    return [(name, int(port) if port else None) for name, port in zip(names, ports, strict=True)]


def _text(url: URL, name: str) -> str:
    value = url.query.get(name, "")
    assert isinstance(value, str)
    return value


def shown(url: URL) -> str:
    """Return the URL as text without passwords."""
    return url.difference_update_query(["sslpassword"]).render_as_string(hide_password=True)


# --- connecting ------------------------------------------------------------------------------------


def connect_arguments(
    url: URL, *, timeout: float, is_primary: bool = True, **settings: str
) -> dict[str, Any]:
    """Return the arguments for `connect` below, or for SQLAlchemy with it as `async_creator_fn`.

    `timeout` is in seconds for all hosts together; `settings` are server settings. With several hosts and
    `is_primary`, the host that accepts writes is chosen, unless the URL sets target_session_attrs.
    """
    hosts = hosts_of(url)
    passed = {name: _text(url, name) for name in _OF_ASYNCPG if name in url.query}
    asked = {name: _text(url, name) for name in _OF_SERVER if name in url.query}
    arguments: dict[str, Any] = {"user": url.username, "password": url.password, "database": url.database}
    if passed.get("sslrootcert") == _SYSTEM:
        arguments["ssl"] = _trust_system(passed)
    elif passed:
        arguments["dsn"] = "postgresql://?" + urlencode(passed)
    # `end_overdue` recognizes Foliot's own sessions by this name, and so do people in pg_stat_activity.
    arguments["server_settings"] = {"application_name": APPLICATION_NAME} | asked | settings
    limit = int(_text(url, "connect_timeout") or 0)
    share = timeout / max(1, len(hosts))
    default = "read-write" if is_primary and len(hosts) > 1 else "any"
    return arguments | {
        "hosts": hosts,
        "wanted": _text(url, "target_session_attrs") or default,
        "timeout": min(limit, share) if limit else share,
    }


def _trust_system(passed: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if "sslcert" in passed:
        context.load_cert_chain(passed["sslcert"], passed.get("sslkey"), passed.get("sslpassword"))
    return context


async def connect(*, hosts: Sequence[Host], wanted: str, timeout: float, **arguments: Any) -> Any:
    """Connect to the first host that answers within `timeout` and has the `wanted` session attribute.

    asyncpg has one timeout for all hosts together: a host that does not answer would use it up.
    """
    passes = ("standby", "any") if wanted == "prefer-standby" else (wanted,)
    attempt = partial(asyncpg.connect, timeout=timeout, **arguments)
    places: Sequence[tuple[str | None, int | None]] = hosts or [(None, None)]
    failures: dict[str, Exception] = {}
    for attribute in passes:
        for name, port in places:
            try:
                return await attempt(host=name, port=port, target_session_attrs=attribute)
            except asyncpg.TargetServerAttributeNotMatched:
                failures[f"{name}:{port or 5432}"] = ConnectionError(f"is not {attribute}")
            except (OSError, asyncpg.CannotConnectNowError) as error:
                failures[f"{name}:{port or 5432}"] = error
    [*_, last] = failures.values()
    if len(failures) == 1:
        raise last
    details = "; ".join(
        f"{host} {str(error) or 'did not answer in time'}" for host, error in failures.items()
    )
    raise ConnectionError(f"no host of the database URL can be used: {details}") from last
