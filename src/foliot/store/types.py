"""Column types that mean the same on both databases."""

from datetime import UTC, datetime
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

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name != "sqlite":
            return value
        return micros_of(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None or dialect.name != "sqlite":
            return None if value is None else value.astimezone(UTC)
        return instant_of(value)


Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""A document; a missing one is SQL's NULL."""
