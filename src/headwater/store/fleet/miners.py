"""Machines of a user, and the catalogue of models that everybody shares."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import columns, insert_into, portable

_has_fleet = portable(
    """SELECT EXISTS (SELECT 1 FROM user_miners WHERE tenant_id = :tenant_id AND user_id = :user_id)
        OR EXISTS (SELECT 1 FROM treasury_trades WHERE tenant_id = :tenant_id AND user_id = :user_id)"""
)


def has_fleet(conn: Connection, reader: Reader) -> bool:
    """Whether the reader has machines or trades."""
    return bool(_has_fleet.value(conn, tenant_id=reader.tenant_id, user_id=reader.user_id))


class MinerModel(NamedTuple):
    """What a maker says about one machine of a model."""

    id: int
    model_name: str
    manufacturer: str
    reference_hashrate_th: Decimal
    reference_power_w: Decimal
    release_date: str | None
    is_shipped: bool


class ModelFacts(NamedTuple):
    """A model as a catalogue lists it."""

    model_name: str
    manufacturer: str
    reference_hashrate_th: Decimal
    reference_power_w: Decimal
    release_date: str | None


class MinerFacts(NamedTuple):
    """What a user says about machines of one kind at one place. Figures are those of one machine."""

    miner_model_id: int | None
    name: str
    site: str
    pool: str
    quantity: int
    actual_hashrate_th: Decimal
    actual_power_w: Decimal
    electricity_usd_per_kwh: Decimal
    purchase_usd: Decimal | None


class Miner(NamedTuple):
    """Machines of a user. `revision` grows with every change."""

    id: int
    miner_model_id: int | None
    name: str
    site: str
    pool: str
    quantity: int
    actual_hashrate_th: Decimal
    actual_power_w: Decimal
    electricity_usd_per_kwh: Decimal
    purchase_usd: Decimal | None
    revision: int
    created_at: datetime
    updated_at: datetime
    model: str | None
    manufacturer: str | None

    @property
    def facts(self) -> MinerFacts:
        return MinerFacts(*(getattr(self, name) for name in MinerFacts._fields))


def model_key(name: str) -> str:
    """Returns the name of a model as names are compared: without case, and with single spaces."""
    return " ".join(name.casefold().split())


_models = portable(f"SELECT {columns(MinerModel)} FROM miner_models ORDER BY manufacturer, model_name", row=MinerModel)
_model = portable(f"SELECT {columns(MinerModel)} FROM miner_models WHERE id = ?", row=MinerModel)
_model_named = portable(f"SELECT {columns(MinerModel)} FROM miner_models WHERE model_key = ?", row=MinerModel)
_SAVED = ("model_key", *ModelFacts._fields, "is_shipped")
_SET = ", ".join(f"{name} = excluded.{name}" for name in _SAVED)
_save_model = portable(
    f"""{insert_into("miner_models", _SAVED)} ON CONFLICT (model_key) DO UPDATE SET {_SET}
    WHERE miner_models.is_shipped OR NOT excluded.is_shipped"""
)

_OF = ("tenant_id", "user_id", *MinerFacts._fields)
_OWN = "m.tenant_id = ? AND m.user_id = ?"
_FIELDS = ", ".join(f"m.{name}" for name in Miner._fields[:-2])
_SELECT = f"""SELECT {_FIELDS}, k.model_name, k.manufacturer
    FROM user_miners m LEFT JOIN miner_models k ON k.id = m.miner_model_id WHERE {_OWN}"""
_page = portable(f"{_SELECT} AND m.id > ? ORDER BY m.id LIMIT ?", row=Miner)
_one = portable(f"{_SELECT} AND m.id = ?", row=Miner)
_taken = portable(f"{_SELECT} AND m.id = ?", postgresql=" FOR UPDATE OF m", row=Miner)
_count = portable("SELECT count(*) FROM user_miners m WHERE " + _OWN)
_insert = portable(insert_into("user_miners", (*_OF, "created_at", "updated_at")) + " RETURNING id")
_update = portable(
    f"""UPDATE user_miners SET {", ".join(f"{name} = :{name}" for name in MinerFacts._fields)},
        revision = revision + 1, updated_at = :now
    WHERE tenant_id = :tenant_id AND user_id = :user_id AND id = :id"""
)
_delete = portable("DELETE FROM user_miners WHERE tenant_id = ? AND user_id = ? AND id = ?")


def models(conn: Connection) -> list[MinerModel]:
    """Returns the catalogue."""
    return _models.all(conn)


def model(conn: Connection, model_id: int) -> MinerModel | None:
    return _model.first(conn, model_id)


def model_named(conn: Connection, name: str) -> MinerModel | None:
    return _model_named.first(conn, model_key(name))


def save_models(conn: Connection, facts: Iterable[ModelFacts], *, shipped: bool = False) -> None:
    """Adds models and corrects those that are there. What ships with Headwater does not replace what was imported."""
    rows = [{**one._asdict(), "model_key": model_key(one.model_name), "is_shipped": shipped} for one in facts]
    _save_model.many(conn, rows)


def page(conn: Connection, reader: Reader, *, after: int, limit: int) -> list[Miner]:
    """Returns machines of a reader, in the order in which they were added."""
    return _page.all(conn, reader.tenant_id, reader.user_id, after, limit)


def one(conn: Connection, reader: Reader, miner_id: int) -> Miner | None:
    return _one.first(conn, reader.tenant_id, reader.user_id, miner_id)


def take(conn: Connection, reader: Reader, miner_id: int) -> Miner | None:
    """Returns machines that nobody else changes until the transaction ends."""
    return _taken.first(conn, reader.tenant_id, reader.user_id, miner_id)


def count(conn: Connection, reader: Reader) -> int:
    return int(_count.value(conn, reader.tenant_id, reader.user_id))


def add(conn: Connection, reader: Reader, facts: MinerFacts, now: datetime) -> int:
    """Adds machines. Returns their id."""
    return int(_insert.value(conn, **_owned(reader), **facts._asdict(), created_at=now, updated_at=now))


def change(conn: Connection, reader: Reader, miner_id: int, facts: MinerFacts, now: datetime) -> None:
    """Replaces what is said about machines that `take` has returned."""
    _update.once(conn, **_owned(reader), **facts._asdict(), id=miner_id, now=now)


def remove(conn: Connection, reader: Reader, miner_id: int) -> bool:
    return _delete.once(conn, reader.tenant_id, reader.user_id, miner_id) > 0


def _owned(reader: Reader) -> dict[str, Any]:
    return {"tenant_id": reader.tenant_id, "user_id": reader.user_id}
