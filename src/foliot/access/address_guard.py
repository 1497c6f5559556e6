"""Which addresses an HTTP target may reach: only public ones, unless an operator allows others.

The check runs twice. When a schedule is saved, it checks the host as written, in every spelling that some
resolver accepts as an address. When a connection is made, it checks the addresses that the name has just
resolved to. The connection then uses one of these addresses, so a later change of the name has no effect.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import unquote

from foliot.model.errors import FoliotError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

SETTING = "FOLIOT_HTTP_ALLOW"

# An explicit list, because `is_global` of the standard library differs between Python versions.
_INTERNAL_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host services: a public number that only virtual machines can reach
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_PUBLIC_IPV6 = IPv6Network("2000::/3")
"""The only IPv6 range allocated for public use. Loopback, mapped, NAT64, unique local, link-local and
multicast addresses are all outside it."""
_INTERNAL_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # Teredo and other protocols that carry an IPv4 address
        "2001:db8::/32",
        "2002::/16",  # 6to4 carries one as well
        "3fff::/20",
    )
)
_LOCAL_NAMES = frozenset({"localhost", "localdomain", "local", "internal", "home.arpa"})
_LOCAL_ALIASES = frozenset({"ip6-localhost", "ip6-loopback", "broadcasthost"})
_DOTS = str.maketrans({"。": ".", "．": ".", "｡": "."})
_IGNORED = re.compile("[\u00ad\u034f\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")
"""Characters that resolvers of international names drop."""
_LABEL = re.compile(r"^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$")
_NUMBER = re.compile(r"^(0x[0-9a-f]*|[0-9]+)$")


class InternalAddressError(FoliotError):
    """A connection was refused because it would have reached an internal address."""

    def __init__(self, host: str) -> None:
        # The message omits the resolved address: authors of schedules must not learn internal DNS.
        super().__init__(f"{host} is an internal address; an operator can allow it with {SETTING}")
        self.host = host


def is_internal(address: Address) -> bool:
    """Whether an address is not public."""
    if isinstance(address, IPv4Address):
        return any(address in network for network in _INTERNAL_IPV4)
    return address not in _PUBLIC_IPV6 or any(address in network for network in _INTERNAL_IPV6)


@dataclass(frozen=True, slots=True)
class Host:
    """The host of a URL, as resolvers understand it."""

    name: str
    """Lower case, without a dot at its end."""
    address: Address | None
    """The address that the text spells. None: the host is a name."""
    is_plain: bool
    """Whether an address is in its usual spelling. Always True for a name."""

    @classmethod
    def read(cls, text: str) -> "Host":
        """Parse a host in any spelling. Raises ValueError if it is neither a name nor an address."""
        written = text.removeprefix("[").removesuffix("]").lower()
        folded = unicodedata.normalize("NFKC", unquote(written)).translate(_DOTS).lower()
        name = _IGNORED.sub("", folded).rstrip(".")
        if ":" in name:
            return cls._read_ipv6(written, name)
        labels = name.split(".")
        if _NUMBER.match(labels[-1]):
            address = _ipv4_of(labels)
            if address is None:
                raise ValueError("is not an address, although it ends in a number")
            return cls(str(address), address, is_plain=str(address) == written)
        if len(name) > 253 or not all(_LABEL.match(label) or not label.isascii() for label in labels):
            raise ValueError("is not a host name")
        if "%" in written:
            raise ValueError("must not be percent-encoded")
        return cls(name, None, is_plain=True)

    @classmethod
    def _read_ipv6(cls, written: str, name: str) -> "Host":
        bare, percent, _zone = name.partition("%")
        try:
            address = IPv6Address(bare)
        except ValueError:
            raise ValueError("is not an IPv6 address") from None
        return cls(str(address), address, is_plain=not percent and bare == written)

    @property
    def is_local_name(self) -> bool:
        """Whether the name is reserved for internal use, such as `localhost` or `*.internal`."""
        if self.address is not None:
            return False
        return self.name in _LOCAL_ALIASES or any(
            self.name == local or self.name.endswith(f".{local}") for local in _LOCAL_NAMES
        )


def _ipv4_of(labels: list[str]) -> IPv4Address | None:
    """Parse an IPv4 address as inet_aton does.

    It has one to four numbers in decimal, octal or hex. The last number fills all remaining bytes.
    """
    try:
        numbers = [_number_of(label) for label in labels]
    except ValueError:
        return None
    *heads, last = numbers
    if len(heads) > 3 or any(head > 255 for head in heads) or last >= 256 ** (4 - len(heads)):
        return None
    value = last
    for index, head in enumerate(heads):
        value += head << (24 - 8 * index)
    return IPv4Address(value)


def _number_of(label: str) -> int:
    if not _NUMBER.match(label) or len(label) > 64:
        raise ValueError(label)
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if label.startswith("0") else int(label)


@dataclass(frozen=True, slots=True)
class HttpAllow:
    """Internal networks and host names that HTTP targets may reach."""

    networks: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()
    """Host names. A name that starts with a dot matches all names below it."""

    @classmethod
    def parse(cls, text: str) -> "HttpAllow":
        """Parse networks and host names separated by commas. Raises ValueError that names the wrong entry."""
        networks: list[Network] = []
        names: set[str] = set()
        for entry in filter(None, (part.strip().lower() for part in text.split(","))):
            if network := _network_of(entry):
                networks.append(network)
            else:
                names.add(_allowed_name(entry))
        return cls(tuple(networks), frozenset(names))

    def allows_name(self, name: str) -> bool:
        """Whether this host name is allowed, whatever address it resolves to."""
        if name in self.names:
            return True
        labels = name.split(".")
        return any("." + ".".join(labels[start:]) in self.names for start in range(1, len(labels)))

    def allows_address(self, address: Address) -> bool:
        return any(address.version == each.version and address in each for each in self.networks)


def _network_of(entry: str) -> Network | None:
    try:
        return ip_network(entry)
    except ValueError as error:
        if "/" in entry or ":" in entry:
            raise ValueError(f"{entry!r} is not a network: {error}") from None
        return None


def _allowed_name(entry: str) -> str:
    right = "a network such as 10.0.0.0/8, a host name, or .suffix for all names below it"
    name = entry.removeprefix(".").removesuffix(".")
    labels = name.split(".")
    # A name whose last label is a number would be parsed as an address in an unusual spelling.
    if not all(_LABEL.match(label) for label in labels) or _NUMBER.match(labels[-1]):
        raise ValueError(f"{entry!r} is not {right}")
    return f".{name}" if entry.startswith(".") else name


@dataclass(frozen=True, slots=True)
class AddressRefusal:
    """Why a host is refused, in words for the author of the schedule."""

    code: str
    detail: str
    hint: str


class AddressGuard:
    """Checks hosts as written and addresses as resolved."""

    def __init__(self, allow: HttpAllow | None = None) -> None:
        self._allow = allow or HttpAllow()

    def refusal_of(self, text: str) -> AddressRefusal | None:
        """Return why a host is refused, without resolving it. None: no objection."""
        try:
            host = Host.read(text)
        except ValueError as error:
            return AddressRefusal(
                "host", f"its host {error}", "a host name, or an address such as 192.0.2.7 or [::1]"
            )
        if host.address is not None and not self._admits(host.name, host.address):
            return _internal(text)
        if not host.is_plain:
            return AddressRefusal(
                "address_spelling", f"{text} is an odd spelling of {host.name}", "write it plainly"
            )
        # If networks are allowed, the resolved address decides: `require` checks it on connection.
        if host.is_local_name and not self._allow.networks and not self._allow.allows_name(host.name):
            return _internal(text)
        return None

    def require(self, text: str, resolved: Iterable[str]) -> list[Address]:
        """Return the resolved addresses of a host. Raises InternalAddressError if any is not allowed."""
        name = text.lower().rstrip(".")
        addresses: list[Address] = [ip_address(each) for each in resolved]
        if not all(self._admits(name, address) for address in addresses):
            raise InternalAddressError(text)
        return addresses

    def _admits(self, name: str, address: Address) -> bool:
        return (
            not is_internal(address) or self._allow.allows_address(address) or self._allow.allows_name(name)
        )


def _internal(text: str) -> AddressRefusal:
    hint = f"use a public address, or have an operator allow it with {SETTING}"
    return AddressRefusal("internal_address", f"{text} is an internal address", hint)
