"""Secret values sent with an attempt, stored encrypted to redact what the agent reports later.

At the time of the report a secret may have changed or been deleted. So the values are stored with the
attempt, encrypted with a key of their own. This key is not stored: it is part of the agent's token and comes
back with the report. A copy of the database does not reveal the values.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

from cryptography.fernet import Fernet, InvalidToken

from foliot.access.cipher import UndecipherableError


class Sealed(NamedTuple):
    text: str
    """The encrypted values, to store."""
    key: str
    """The key that decrypts `text`. It contains no dot, so that it can be part of a token."""


def seal(values: Iterable[str]) -> Sealed:
    """Encrypt the values with a new key."""
    key = Fernet.generate_key()
    return Sealed(Fernet(key).encrypt(json.dumps(sorted(set(values))).encode()).decode(), _short(key))


def unseal(text: str, key: str) -> list[str]:
    """Decrypt the values. Raises UndecipherableError."""
    try:
        values: list[str] = json.loads(Fernet(f"{key}=").decrypt(text))
    except (InvalidToken, ValueError, TypeError):
        raise UndecipherableError("it was encrypted under another key") from None
    return values


def _short(key: bytes) -> str:
    # The base64 of 32 bytes always ends with exactly one padding character.
    return key.decode().removesuffix("=")
