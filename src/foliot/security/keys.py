"""Secrets that let a caller in: API keys, sessions of browsers, links that sign a browser in once.

Each is 256 random bits behind a prefix that tells what it is, so that one which leaks is recognised. Shown
once, kept as a hash: who reads the database, or a backup of it, has no key.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum

SECRET_BYTES = 32
MIN_OPERATOR_KEY = 32
MIN_SECRET_BYTES = 32
"""Of what is shared with who signs tokens."""
CREDENTIAL_DIGITS = 16
"""How much of a session's hash is its name, in the audit and in logs."""

_SECRET = "[A-Za-z0-9_-]{43}"  # noqa: S105 - the form of 32 bytes in base64
_KEY_ID = "[0-9a-f]{16}"
_API_KEY = re.compile(f"flt_({_KEY_ID})_({_SECRET})")
_OPERATOR_KEY = re.compile(r"[!-~][ -~]*[!-~]")


KEY_ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class ApiKey:
    """`flt_<key_id>_<secret>`; the id may be known to all, and finds the row that has the secret's hash."""

    key_id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls, key_id: str | None = None) -> "ApiKey":
        """With an id of its own, or with one that was kept for it."""
        return cls(key_id or secrets.token_hex(KEY_ID_LENGTH // 2), secrets.token_urlsafe(SECRET_BYTES))

    @classmethod
    def parse(cls, text: object) -> "ApiKey | None":
        """None for anything that is no key."""
        found = _API_KEY.fullmatch(text) if isinstance(text, str) else None
        return found and cls(found[1], found[2])

    @staticmethod
    def has_id(text: str) -> bool:
        """Whether a key could have this id."""
        return re.fullmatch(_KEY_ID, text) is not None

    @property
    def text(self) -> str:
        """The key as its owner has it."""
        return f"flt_{self.key_id}_{self.secret}"


class Purpose(StrEnum):
    """What a token without an id is for. It begins with it, so one can't be used for the other."""

    SESSION = "session"
    LINK = "link"

    def new_token(self) -> str:
        return f"{_PREFIXES[self]}_{secrets.token_urlsafe(SECRET_BYTES)}"

    def has_token(self, text: object) -> bool:
        """Whether it has the form of such a token; False for anything else."""
        return isinstance(text, str) and re.fullmatch(f"{_PREFIXES[self]}_{_SECRET}", text) is not None


_PREFIXES = {Purpose.SESSION: "fls", Purpose.LINK: "fll"}


def hash_of(secret: str) -> str:
    """What is kept of a secret. Quick on purpose: nobody can guess 256 random bits, however quickly."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_hash_of(kept: str, secret: str) -> bool:
    """Takes the same time wherever the two differ."""
    return hmac.compare_digest(kept.encode(), hash_of(secret).encode())


def session_credential(token_hash: str) -> str:
    """Names a session without being one."""
    return f"session:{token_hash[:CREDENTIAL_DIGITS]}"


class OperatorKey:
    """FOLIOT_ADMIN_KEY, which the operator chose; kept only as hashes, here as well."""

    def __init__(self, text: str) -> None:
        """A ValueError says what would be right, and never shows the key."""
        if len(text) < MIN_OPERATOR_KEY:
            raise ValueError(f"has {len(text)} characters, and needs at least {MIN_OPERATOR_KEY}")
        if not _OPERATOR_KEY.fullmatch(text):
            raise ValueError("must be printable ASCII without spaces around it, since it goes into a header")
        self._hash = hash_of(text)
        # Not 256 random bits, perhaps, and this one is stored: so slow to guess, and made once.
        made = hashlib.scrypt(text.encode(), salt=b"foliot operator's sessions", n=2**14, r=8, p=1, dklen=14)
        self.fingerprint = f"op:{made.hex()}"
        """Stands in the rows of its sessions, which end when the operator chooses another key."""

    def is_it(self, text: str) -> bool:
        """Takes the same time wherever the two differ, and whatever their lengths."""
        return is_hash_of(self._hash, text)
