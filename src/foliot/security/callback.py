"""The token by which an agent proves that an attempt was given to it."""

import base64
import hashlib
import hmac
from uuid import UUID


class CallbackTokens:
    """Makes and checks tokens that hold for one attempt of one execution; nothing is stored for them."""

    def __init__(self, key: bytes) -> None:
        if len(key) < 32:
            raise ValueError("the key of callback tokens needs at least 32 bytes")
        self._key = key

    def derive(self, purpose: bytes) -> bytes:
        """A key for something else, from which this one can't be told."""
        return hmac.new(self._key, b"foliot key for:" + purpose, hashlib.sha256).digest()

    def token(self, execution_id: UUID, attempt: int, *, key: str = "") -> str:
        """`key` opens the stored secrets of the attempt (see `sealing`); only the agent keeps it."""
        message = f"foliot callback:{execution_id}:{attempt}".encode()
        digest = hmac.new(self._key, message, hashlib.sha256).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return f"{proof}.{key}" if key else proof

    def is_valid(self, token: str, execution_id: UUID, attempt: int) -> bool:
        """Takes the same time whatever is wrong with the token."""
        expected = self.token(execution_id, attempt)
        proof = token.partition(".")[0]
        return hmac.compare_digest(expected.encode(), proof.encode("utf-8", "replace"))


def key_in(token: str) -> str:
    """The key that a token carries; empty: none."""
    return token.partition(".")[2]
