"""Column types that mean the same on both databases."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine

from foliot.model.instant import instant_of, micros_of


class Instant(TypeDecorator[datetime]):
    """A moment in UTC: `timestamptz` on PostgreSQL, microseconds since 1970 on SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(DateTime(timezone=True))

    # asyncpg takes and gives aware datetimes in UTC: nothing to do, and no call for every value.
    def bind_processor(self, dialect: Dialect) -> Any:
        return _micros_or_none if dialect.name == "sqlite" else None

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:  # noqa: ARG002
        return _instant_or_none if dialect.name == "sqlite" else None


def _micros_or_none(value: datetime | None) -> int | None:
    return None if value is None else micros_of(value)


def _instant_or_none(value: int | None) -> datetime | None:
    return None if value is None else instant_of(value)


Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""A document; a missing one is SQL's NULL."""


def storable(text: str) -> str:
    """The text as every database can hold it: without NUL, and without halves of a character."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
