"""Secret values that were sent with an attempt, kept to redact what its agent reports later.

By the time of the report a secret may have another value, or none. So the values are kept with the attempt,
encrypted under a key of their own. The key is not stored: it is a part of the token that the agent was given,
and comes back with the report. A copy of the database gives the values away to nobody.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

from cryptography.fernet import Fernet, InvalidToken

from foliot.security.cipher import UndecipherableError


class Sealed(NamedTuple):
    text: str
    """What to store."""
    key: str
    """What opens it; without a dot, so that it can be a part of a token."""


def seal(values: Iterable[str]) -> Sealed:
    """Encrypt the values under a new key."""
    key = Fernet.generate_key()
    return Sealed(Fernet(key).encrypt(json.dumps(sorted(set(values))).encode()).decode(), _short(key))


def unseal(text: str, key: str) -> list[str]:
    """The values. Raises UndecipherableError."""
    try:
        values: list[str] = json.loads(Fernet(f"{key}=").decrypt(text))
    except (InvalidToken, ValueError, TypeError):
        raise UndecipherableError("it was encrypted under another key") from None
    return values


def _short(key: bytes) -> str:
    # Of 32 bytes there is always one sign of padding.
    return key.decode().removesuffix("=")
