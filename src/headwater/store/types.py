"""How times and JSON are kept: one way in Python, the best one of each database below."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

BigId = BigInteger().with_variant(Integer(), "sqlite")
Json = JSON().with_variant(JSONB(), "postgresql")


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment(value: Any) -> datetime:
    """What the driver gave back for a time, as an aware datetime."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return _EPOCH + timedelta(microseconds=value)


def moment_or_none(value: Any) -> datetime | None:
    return None if value is None else moment(value)


def json_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def json_value(value: Any) -> Any:
    """A JSON column as the driver gave it: SQLite has text, PostgreSQL has parsed it already."""
    if value == "{}":
        return {}
    return orjson.loads(value) if isinstance(value, str | bytes) else value


class Moment(TypeDecorator[datetime]):
    """An aware UTC time: timestamptz on PostgreSQL, microseconds since 1970 on SQLite (8 bytes, sorted, no parsing)."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(DateTime(timezone=True))
        return dialect.type_descriptor(BigInteger())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return microseconds(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return moment_or_none(value)


# Statements executed by the driver itself bypass Moment; sqlite3 then asks this.
sqlite3.register_adapter(datetime, microseconds)
