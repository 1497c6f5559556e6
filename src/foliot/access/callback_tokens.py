"""The token with which an agent proves that it received an attempt."""

import base64
import hashlib
import hmac
from uuid import UUID


class CallbackTokens:
    """Creates and verifies tokens, each valid for one attempt of one execution. Nothing is stored."""

    def __init__(self, key: bytes) -> None:
        if len(key) < 32:
            raise ValueError("the key of callback tokens needs at least 32 bytes")
        self._key = key

    def derive(self, purpose: bytes) -> bytes:
        """Derive a key for another purpose. The derived key does not reveal this one."""
        return hmac.new(self._key, b"foliot key for:" + purpose, hashlib.sha256).digest()

    def token(self, execution_id: UUID, attempt: int, *, key: str = "") -> str:
        """Create the token of an attempt.

        `key` decrypts the stored secret values of the attempt (see `sealing`). It is stored nowhere else:
        only the agent has it.
        """
        message = f"foliot callback:{execution_id}:{attempt}".encode()
        digest = hmac.new(self._key, message, hashlib.sha256).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return f"{proof}.{key}" if key else proof

    def is_valid(self, token: str, execution_id: UUID, attempt: int) -> bool:
        """Whether the token belongs to this attempt. Compares in constant time."""
        expected = self.token(execution_id, attempt)
        proof = token.partition(".")[0]
        return hmac.compare_digest(expected.encode(), proof.encode("utf-8", "replace"))


def key_in(token: str) -> str:
    """Return the decryption key inside a token. Empty: the token has none."""
    return token.partition(".")[2]
