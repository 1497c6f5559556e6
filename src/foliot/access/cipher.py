"""Encryption of stored secrets: encrypt with the first of several keys, decrypt with any of them."""

import base64
import binascii
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

MIN_KEY_LENGTH = 32


class UndecipherableError(ValueError):
    """None of the keys can decrypt the value."""


class Cipher:
    """Encrypts with the first key and decrypts with any key. To rotate, put a new key before the old ones."""

    def __init__(self, keys: Sequence[Fernet]) -> None:
        self._first = keys[0]
        self._all = MultiFernet(keys)

    @classmethod
    def from_keys(cls, text: str) -> "Cipher":
        """Parse keys separated by commas. Raises ValueError with a wrong key's position, never its text."""
        return cls([_fernet_of(part.strip(), place) for place, part in enumerate(text.split(","), start=1)])

    def encrypt(self, value: str) -> str:
        return self._all.encrypt(value.encode()).decode()

    def decrypt(self, token: str) -> str:
        try:
            return self._all.decrypt(token.encode()).decode()
        except InvalidToken:
            raise UndecipherableError("it was encrypted under another key") from None

    def is_current(self, token: str) -> bool:
        """Whether the value is encrypted with the first key."""
        try:
            self._first.decrypt(token.encode())
        except InvalidToken:
            return False
        return True

    def rotate(self, token: str) -> str:
        """Encrypt the value again, with the first key."""
        return self.encrypt(self.decrypt(token))


def _fernet_of(key: str, place: int) -> Fernet:
    if len(key) < MIN_KEY_LENGTH:
        raise ValueError(f"key {place} has {len(key)} characters, and needs at least {MIN_KEY_LENGTH}")
    try:
        if len(base64.b64decode(key.encode("ascii"), altchars=b"-_", validate=True)) == 32:
            return Fernet(key)
    except (UnicodeEncodeError, binascii.Error):
        pass
    # No salt: the same text must give the same key on every machine and after every restart.
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"foliot stored secrets")
    return Fernet(base64.urlsafe_b64encode(derived.derive(key.encode())))
