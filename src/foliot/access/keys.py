"""Credentials of callers: API keys, browser sessions, and links that sign a browser in once.

Each is 256 random bits after a prefix that identifies its kind, so a leaked one can be recognised. It is
shown once and stored only as a hash, so the database and its backups contain no usable key.
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
"""Minimum length of the secret shared with the issuer of tokens (FOLIOT_JWT_SECRET)."""
CREDENTIAL_DIGITS = 16
"""How many digits of a session's hash identify it in the audit and in logs."""

_SECRET = "[A-Za-z0-9_-]{43}"  # noqa: S105 - the form of 32 bytes in base64
_KEY_ID = "[0-9a-f]{16}"
_API_KEY = re.compile(f"flt_({_KEY_ID})_({_SECRET})")
_OPERATOR_KEY = re.compile(r"[!-~][ -~]*[!-~]")


KEY_ID_LENGTH = 16


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key, `flt_<key_id>_<secret>`. The id is public; it finds the row with the secret's hash."""

    key_id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls, key_id: str | None = None) -> "ApiKey":
        """Create a key with the given id. None: a random id."""
        return cls(key_id or secrets.token_hex(KEY_ID_LENGTH // 2), secrets.token_urlsafe(SECRET_BYTES))

    @classmethod
    def parse(cls, text: object) -> "ApiKey | None":
        """Parse a key. None: the value is not a key."""
        found = _API_KEY.fullmatch(text) if isinstance(text, str) else None
        return found and cls(found[1], found[2])

    @staticmethod
    def has_id(text: str) -> bool:
        """Whether this text has the form of a key id."""
        return re.fullmatch(_KEY_ID, text) is not None

    @property
    def text(self) -> str:
        """The whole key, as its owner sends it."""
        return f"flt_{self.key_id}_{self.secret}"


class Purpose(StrEnum):
    """The kind of a token without an id. Its prefix shows the kind, so one can't be used as the other."""

    SESSION = "session"
    LINK = "link"

    def new_token(self) -> str:
        return f"{_PREFIXES[self]}_{secrets.token_urlsafe(SECRET_BYTES)}"

    def has_token(self, text: object) -> bool:
        """Whether the value has the form of a token of this kind."""
        return isinstance(text, str) and re.fullmatch(f"{_PREFIXES[self]}_{_SECRET}", text) is not None


_PREFIXES = {Purpose.SESSION: "fls", Purpose.LINK: "fll"}


def hash_of(secret: str) -> str:
    """Return the hash to store for a secret. A fast hash is enough: 256 random bits can't be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_hash_of(kept: str, secret: str) -> bool:
    """Whether a stored hash belongs to the secret. Compares in constant time."""
    return hmac.compare_digest(kept.encode(), hash_of(secret).encode())


def session_credential(token_hash: str) -> str:
    """Return a name for a session that can't be used as a credential."""
    return f"session:{token_hash[:CREDENTIAL_DIGITS]}"


class OperatorKey:
    """The operator's own key, FOLIOT_ADMIN_KEY. Even in memory only its hashes are held."""

    def __init__(self, text: str) -> None:
        """Hash the key. Raises ValueError that says what is wrong, without the key."""
        if len(text) < MIN_OPERATOR_KEY:
            raise ValueError(f"has {len(text)} characters, and needs at least {MIN_OPERATOR_KEY}")
        if not _OPERATOR_KEY.fullmatch(text):
            raise ValueError("must be printable ASCII without spaces around it, since it goes into a header")
        self._hash = hash_of(text)
        # The operator may have chosen a weak key, and the fingerprint is stored: so use a slow hash, once.
        made = hashlib.scrypt(text.encode(), salt=b"foliot operator's sessions", n=2**14, r=8, p=1, dklen=14)
        self.fingerprint = f"op:{made.hex()}"
        """Stored with the sessions of this key. They end when the operator changes the key."""

    def is_it(self, text: str) -> bool:
        """Whether the text is the operator's key. Compares in constant time, for any length."""
        return is_hash_of(self._hash, text)
