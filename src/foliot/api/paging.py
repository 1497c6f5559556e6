"""Pagination of lists by tokens. Only this module parses them.

A token contains the position of the last row, not an offset. So rows that are inserted or deleted between two
pages cause neither duplicates nor gaps.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from fastapi import Depends, Query, Response

from foliot.api.dependencies import made_of_query
from foliot.api.http.json_response import answer
from foliot.model.errors import InvalidError

R = TypeVar("R")

MAX_PER_PAGE = 500

PageSize = Annotated[int, Query(ge=1, le=MAX_PER_PAGE, description="How many items at most.")]
PageToken = Annotated[
    str, Query(max_length=1000, description="`next_page_token` of the page before; empty for the first.")
]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The requested page of a list (a FastAPI dependency)."""

    page_size: PageSize = 50
    page_token: PageToken = ""

    @property
    def limit(self) -> int:
        """The number of rows to read: one more than the page size, to see whether there is a next page."""
        return self.page_size + 1

    def position(self, seal: "Seal | None" = None) -> list[Any] | None:
        """Return the position that `next_token` encoded. None: first page. Raises InvalidError."""
        if not self.page_token:
            return None
        try:
            padded = self.page_token + "=" * (-len(self.page_token) % 4)
            text = base64.b64decode(padded, altchars=b"-_", validate=True)
            values = orjson.loads(text if seal is None else seal.open(text))
        except (binascii.Error, ValueError):
            raise bad_token() from None
        if not isinstance(values, list):
            raise bad_token()
        return values

    def answer(
        self,
        rows: Sequence[R],
        document_of: Callable[[R], Any],
        position_of: Callable[[R], Sequence[Any]],
    ) -> Response:
        shown = rows[: self.page_size]
        has_more = len(rows) > self.page_size
        token = next_token(position_of(shown[-1])) if has_more else ""
        return answer({"items": [document_of(row) for row in shown], "next_page_token": token})

    def answer_part(
        self,
        rows: Sequence[R],
        document_of: Callable[[R], Any],
        position: Sequence[Any] | None,
        seal: "Seal | None" = None,
    ) -> Response:
        """Build a page for a list that provides its next `position`. It may be short and not be the last."""
        token = "" if position is None else next_token(position, seal)
        return answer({"items": [document_of(row) for row in rows], "next_page_token": token})

    def after_text(self) -> str:
        """Return the position in a list sorted by name. Empty: first page."""
        return self._only(str) or ""

    def after_id(self) -> UUID | None:
        """Return the position in a list sorted by id. None: first page."""
        text = self._only(str)
        return None if text is None else read_id(text)

    def _only(self, kind: type[R]) -> R | None:
        values = self.position()
        if values is None:
            return None
        if len(values) != 1 or not isinstance(values[0], kind) or "\0" in str(values[0]):
            raise bad_token()
        return values[0]


Paged = Annotated[PageRequest, Depends(made_of_query(PageRequest))]


class Seal:
    """Encrypts positions, so that clients can neither read nor forge them."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(hashlib.sha512(key).digest())

    def close(self, text: bytes) -> bytes:
        return self._cipher.encrypt(text, None)

    def open(self, sealed: bytes) -> bytes:
        """Decrypt a position. Raises ValueError."""
        try:
            return self._cipher.decrypt(sealed, None)
        except InvalidTag:
            raise ValueError("not sealed by us") from None


def next_token(position: Sequence[Any], seal: Seal | None = None) -> str:
    text = orjson.dumps(list(position), default=str)
    return base64.urlsafe_b64encode(text if seal is None else seal.close(text)).decode().rstrip("=")


def read_id(value: Any) -> UUID:
    try:
        return UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise bad_token() from None


def read_instant(value: Any) -> datetime:
    try:
        instant = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        raise bad_token() from None
    if instant.tzinfo is None:
        raise bad_token()
    return instant


def bad_token() -> InvalidError:
    return InvalidError.at(
        "/page_token", "page_token", "is not one that this list gave", "leave it out to begin anew"
    )
