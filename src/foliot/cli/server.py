"""Which server a command talks to, and with which key.

`--url` and `--key`, else FOLIOT_URL and FOLIOT_KEY, else the `foliot up` of the same folder, which leaves a
file beside its database that says where it serves. Its operator's key is only ever sent to that address: a
command that is pointed elsewhere has to be given a key.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from foliot.cli.failures import UnreachableError
from foliot.model.errors import InvalidError

if TYPE_CHECKING:
    from foliot.cli.client import Api

URL = "FOLIOT_URL"
KEY = "FOLIOT_KEY"


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    """Without a slash at its end, and without /api/v1."""
    key: str = field(repr=False)


@contextmanager
def connected(url: str | None, key: str | None) -> "Iterator[Api]":
    """The API for the time of a command; `url` and `key` are those of its options."""
    server = find_server(url, key)

    from foliot.cli.client import Api

    with Api(server) as api:
        yield api


def find_server(url: str | None, key: str | None, environment: Mapping[str, str] | None = None) -> Server:
    """Raises UnreachableError where it is not known whom to ask, or as whom."""
    given = os.environ if environment is None else environment
    address = _address(url or given.get(URL) or None, "--url" if url else URL)
    secret = _secret(key or given.get(KEY) or None, "--key" if key else KEY)
    if address is not None and secret is not None:
        return Server(address, secret)
    return _of_this_folder(address, secret)


def _of_this_folder(address: str | None, secret: str | None) -> Server:
    """What was not given, from the `foliot up` of the folder."""
    from foliot.cli.operator_key import key_file, read_key, running_file
    from foliot.settings import load_settings

    settings = load_settings()
    local = running_at(running_file(settings.database_url))
    if address is None and local is None:
        raise UnreachableError(
            f"no server: set {URL} (or --url), or run this in the folder of a running `foliot up`"
        )
    if secret is None and address in (None, local):
        kept = settings.admin_key
        secret = kept.get_secret_value() if kept else read_key(key_file(settings.database_url))
    if secret is None:
        raise UnreachableError(f"no key for {address or local}: set {KEY} (or --key)")
    server = address or local
    assert server is not None
    return Server(server, secret)


def running_at(file: Path) -> str | None:
    """The address that a `foliot up` left; None: none runs."""
    try:
        told: Any = json.loads(file.read_text(encoding="utf-8"))
        address, pid = str(told["url"]), int(told["pid"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    # One that was killed leaves its file; whoever listens there by now must not get the key.
    return _address(address, str(file)) if _is_alive(pid) else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


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
