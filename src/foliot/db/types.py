"""Column types with the same meaning on both databases."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine

from foliot.model.instant import instant_of, micros_of


class Instant(TypeDecorator[datetime]):
    """An instant in UTC: `timestamptz` on PostgreSQL, microseconds since 1970 on SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(DateTime(timezone=True))

    # asyncpg accepts and returns aware datetimes in UTC: no conversion, and no call per value.
    def bind_processor(self, dialect: Dialect) -> Any:
        return _micros_or_none if dialect.name == "sqlite" else None

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:  # noqa: ARG002
        return _instant_or_none if dialect.name == "sqlite" else None


def _micros_or_none(value: datetime | None) -> int | None:
    return None if value is None else micros_of(value)


def _instant_or_none(value: int | None) -> datetime | None:
    return None if value is None else instant_of(value)


Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""A JSON document. None is stored as SQL NULL."""


def storable(text: str) -> str:
    """Replace what some databases can't store: NUL and lone surrogates."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
