"""Find the server and the key that a command uses.

First `--url` and `--key`, then FOLIOT_URL and FOLIOT_KEY, then the `foliot up` of the same folder. It stores
two files next to its database: its address, and the operator's key.

- A key from the environment is sent only to an address that the user gave with --url or FOLIOT_URL.
- The file with the address is used only if this user owns it, no one else can write it, and the address is a
  loopback address. Otherwise anyone who can write to a folder would get the keys of users who run commands
  there.
- The operator's key in the other file is sent only to that address.
"""

import ipaddress
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from foliot.cli.support.api_failures import NoKeyError, UnreachableError
from foliot.cli.support.output import say
from foliot.cli.support.private_file import OTHERS_CAN_WRITE, NotPrivateError, read_private
from foliot.model.errors import InvalidError

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

URL = "FOLIOT_URL"
KEY = "FOLIOT_KEY"


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    """Base URL without a trailing slash and without /api/v1."""
    key: str = field(repr=False)


@contextmanager
def connected(url: str | None, key: str | None) -> "Iterator[ApiClient]":
    """Open an API client for a command. `url` and `key`: the values of its options."""
    server = find_server(url, key)
    if not (url or key or os.environ.get(URL)) and os.environ.get(KEY):
        # Not an error: the operator's key of this folder is used instead.
        say(f"{KEY} is not used without {URL}; the key of this folder's `foliot up` is")

    from foliot.cli.support.rest_client import ApiClient

    with ApiClient(server) as api:
        yield api


def find_server(url: str | None, key: str | None, environment: Mapping[str, str] | None = None) -> Server:
    """Find server and key. Raises UnreachableError if no address is known, and NoKeyError without a key."""
    given = os.environ if environment is None else environment
    address = _address(url or given.get(URL) or None, "--url" if url else URL)
    of_option = _secret(key or None, "--key")
    of_environment = _secret(given.get(KEY) or None, KEY)
    if address is not None and (of_option or of_environment):
        return Server(address, of_option or of_environment or "")
    return _of_this_folder(address, of_option)


def _of_this_folder(address: str | None, secret: str | None) -> Server:
    """Take the missing address or key from the `foliot up` of this folder."""
    from foliot.cli.process.operator_key import key_file, read_key, running_file
    from foliot.instance.settings import load_settings

    settings = load_settings()
    file = running_file(settings.database_url)
    try:
        local, reason = running_at(file), ""
    except NotPrivateError as error:
        local, reason = None, f"; {file} is not used: {error}"
    server = address or local
    if server is None:
        raise UnreachableError(
            f"no server: set {URL} (or --url), or run this in the folder of a running `foliot up`{reason}"
        )
    if secret is None and server == local:
        secret = read_key(key_file(settings.database_url))
    if secret is None:
        hint = "" if address else f" together with {URL}"
        raise NoKeyError(f"no key for {server}: set {KEY}{hint} (or --key){reason}")
    return Server(server, secret)


def running_at(file: Path) -> str | None:
    """Return the address that a `foliot up` of this user stored. None: none is running.

    Raises NotPrivateError if another user may have written the file, or if the address is not on this
    machine.
    """
    try:
        document: Any = json.loads(read_private(file, refused_mode=OTHERS_CAN_WRITE))
        address, pid = _address(str(document["url"]), str(file)), int(document["pid"])
    except (OSError, ValueError, TypeError, KeyError, InvalidError):
        return None
    # A killed process leaves its file. Another process that now listens there must not get the key.
    if address is None or not _is_alive(pid):
        return None
    if not is_loopback(address):
        raise NotPrivateError(f"{address} is not a loopback address")
    return address


def _is_alive(pid: int) -> bool:
    """Whether a process of this user has this id."""
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return False
    return True


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(urlsplit(address).hostname or "").is_loopback
    except ValueError:
        return False


def _address(text: str | None, origin: str) -> str | None:
    if text is None:
        return None
    address = text.strip().rstrip("/").removesuffix("/api/v1").rstrip("/")
    try:
        parts = urlsplit(address)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_right = False
    if not is_right or not address.isprintable() or " " in address:
        raise InvalidError.at(origin, "url", "is not an address", "such as https://foliot.example.com")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidError.at(origin, "url", "must be an address alone", f"the key goes into {KEY}")
    return address


def _secret(text: str | None, origin: str) -> str | None:
    if text is None:
        return None
    secret = text.strip()
    if not (secret.isascii() and secret.isprintable()):
        raise InvalidError.at(origin, "key", "is not a key")
    return secret or None
