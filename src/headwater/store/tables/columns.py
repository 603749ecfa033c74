"""What the definitions of tables share: the metadata, the types, and the columns that recur."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeDecorator, TypeEngine

from headwater.store.sql import decimal_text, microseconds, moment_or_none

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

BigId = BigInteger().with_variant(Integer(), "sqlite")
Json = JSON().with_variant(JSONB(), "postgresql")


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


class Exact(TypeDecorator[Decimal]):
    """A decimal number with all its digits: numeric on PostgreSQL, text on SQLite, whose numbers are binary."""

    impl = Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Numeric() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else decimal_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value)


def table(name: str, *parts: SchemaItem, **options: Any) -> Table:
    return Table(name, metadata, *parts, **options)


def required(**types: Any) -> list[Column[Any]]:
    """Columns that always have a value, each with its type."""
    return [Column(name, type_, nullable=False) for name, type_ in types.items()]


def optional(**types: Any) -> list[Column[Any]]:
    """Columns that may be NULL, each with its type."""
    return [Column(name, type_) for name, type_ in types.items()]


def own_id(name: str = "id") -> Column[int]:
    """A number that the database gives to each row."""
    return Column(name, BigId, primary_key=True)


def refers_to(table: str, name: str = "", **options: Any) -> Column[int]:
    """The id of a row of another table, such as `source_id` for `sources`. The row goes when that one goes."""
    name = name or f"{table.removesuffix('s')}_id"
    return Column(name, BigId, ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=False, **options)


def of_one_source() -> Column[int]:
    """The key of a table that has at most one row for each source."""
    return refers_to("sources", primary_key=True, autoincrement=False)


def tenant_and_user(*, nullable: bool = False) -> list[Column[int]]:
    return [Column("tenant_id", BigId, nullable=nullable), Column("user_id", BigId, nullable=nullable)]


def of_user() -> ForeignKeyConstraint:
    """Personal rows go when their user goes."""
    return ForeignKeyConstraint(["tenant_id", "user_id"], ["users.tenant_id", "users.id"], ondelete="CASCADE")


def lease() -> list[Column[Any]]:
    """Who may work on a row, and until when. A claim sets the row's next time to the end of the lease."""
    return optional(lease_owner=Text, lease_until=Moment)


def counter(name: str) -> Column[int]:
    """A number that starts at 0."""
    return Column(name, Integer, nullable=False, server_default="0")


def event_columns(*, of_tenant: bool = False) -> list[Column[Any]]:
    """An event in full, for tables that outlive the log's retention. `of_tenant`: each copy belongs to a tenant."""
    tenant_id, user_id = tenant_and_user(nullable=True)
    tenant_id.nullable = not of_tenant
    return [
        *required(event_id=String(36), kind=Text, version=Integer, key=Text),
        tenant_id,
        user_id,
        Column("payload", Json, nullable=False),
        Column("traceparent", Text),
        Column("created_at", Moment, nullable=False),
    ]


def partial_index(name: str, *columns: Column[Any], where: str, unique: bool = False) -> Index:
    """An index of those rows that meet a condition."""
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))
