"""Machines: adding, changing and removing them, and the catalogue of their models.

Two people, or two windows, may change the same machines. Only the fields that are given change, so changes of different
fields do not undo each other. Whoever sends the `revision` that they have seen is refused if it is no longer the
present one, and loses nothing.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from importlib.resources import files
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, Strict
from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app.fleet.amounts import Hashrate, Power, PowerPrice, Usd, Words, plain
from headwater.app.shapes import Example, Time
from headwater.errors import BadInput, ChangedMeanwhile, NotFound, UnknownModel
from headwater.events.catalogue import MINER_ADDED, MINER_CHANGED, MINER_REMOVED, MachineEnd, MachineFacts
from headwater.model import Reader
from headwater.store.fleet import miners
from headwater.store.fleet.miners import Miner, MinerFacts, MinerModel, ModelFacts
from headwater.store.log import outbox
from headwater.store.people import audit

MOST_MINERS = 100_000  # entries; each may be many machines
MOST_SUGGESTED = 5
_AS_MODEL = "null: as the model"

Count = Annotated[int, Strict(), Field(ge=1, le=1_000_000)]
RowId = Annotated[int, Strict(), Field(ge=1, le=2**53 - 1)]


class NewMiner(BaseModel):
    """Machines of one kind at one place. Figures are those of one machine."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "model": "Antminer S19 Pro",
                "site": "Hall 2",
                "quantity": 40,
                "electricity_usd_per_kwh": "0.055",
            }
        },
    )

    model: Words | None = Field(default=None, description="its name in the catalogue (`/api/miner-models`)")
    miner_model_id: RowId | None = Field(default=None, description="the same by its id")
    name: Words = Field(default="", description="what you call them")
    site: Words = Field(default="", description="where they are")
    pool: Words = Field(default="", description="the pool they mine for")
    quantity: Count = Field(default=1, description="how many they are")
    actual_hashrate_th: Hashrate | None = Field(default=None, description=f"TH/s of one machine; {_AS_MODEL}")
    actual_power_w: Power | None = Field(default=None, description=f"watts of one machine; {_AS_MODEL}")
    electricity_usd_per_kwh: PowerPrice = Field(description="what a kilowatt-hour costs there, in USD")
    purchase_usd: Usd | None = Field(default=None, description="what one machine cost, in USD")


class MinerChange(NewMiner):
    """What is to change. What is left out stays as it is."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"electricity_usd_per_kwh": "0.061", "revision": 3}}
    )

    electricity_usd_per_kwh: PowerPrice = Field(default=Decimal(0), description="what a kilowatt-hour costs, in USD")
    revision: RowId | None = Field(
        default=None, description="the revision that you have seen: a 409 if it is no longer the present one"
    )


def add(conn: Connection, reader: Reader, wanted: NewMiner, now: datetime) -> Miner:
    """Adds machines. What is not given about them is as their model has it."""
    if miners.count(conn, reader) >= MOST_MINERS:
        raise BadInput(f"You have {MOST_MINERS:,} entries of machines, which is the most. Remove one first.")
    miner_id = miners.add(conn, reader, _facts(conn, {}, wanted.model_dump()), now)
    added = find(conn, reader, miner_id)
    outbox.append(
        conn, [MINER_ADDED(MachineFacts.of(added, miner_id=added.id), once=str(added.id), reader=reader)], now
    )
    audit.record(conn, reader, "miner.add", miner_id)
    return added


def change(conn: Connection, reader: Reader, miner_id: int, wanted: MinerChange, now: datetime) -> Miner:
    """Changes the fields that are given. Raises ChangedMeanwhile if the revision given is no longer the present one."""
    before = _found(miners.take(conn, reader, miner_id), miner_id)
    given = wanted.model_dump(include=wanted.model_fields_set - {"revision"})
    if not given:
        raise BadInput("Nothing to change: give at least one field besides revision.")
    if wanted.revision is not None and wanted.revision != before.revision:
        raise _changed(before)
    facts = _facts(conn, before.facts._asdict(), given)
    if facts == before.facts:
        return before
    miners.change(conn, reader, miner_id, facts, now)
    after = find(conn, reader, miner_id)
    outbox.append(
        conn,
        [MINER_CHANGED(MachineFacts.of(after, miner_id=after.id), once=f"{after.id}:{after.revision}", reader=reader)],
        now,
    )
    audit.record(conn, reader, "miner.change", miner_id, ", ".join(sorted(given)))
    return after


def remove(conn: Connection, reader: Reader, miner_id: int, now: datetime) -> None:
    """Removes machines. What they measured goes with them."""
    find(conn, reader, miner_id)
    miners.remove(conn, reader, miner_id)
    outbox.append(conn, [MINER_REMOVED(MachineEnd(miner_id=miner_id), once=str(miner_id), reader=reader)], now)
    audit.record(conn, reader, "miner.remove", miner_id)


def find(conn: Connection, reader: Reader, miner_id: int) -> Miner:
    return _found(miners.one(conn, reader, miner_id), miner_id)


def _found(found: Miner | None, miner_id: int) -> Miner:
    if found is None:
        raise NotFound(f"You have no machines {miner_id}.")
    return found


def page(conn: Connection, reader: Reader, *, after: int | None, limit: int) -> list[Miner]:
    """Returns machines in the order in which they were added."""
    return miners.page(conn, reader, after=after or 0, limit=limit)


def _facts(conn: Connection, before: Mapping[str, Any], given: Mapping[str, Any]) -> MinerFacts:
    """Returns what is said about machines: what is given over what was there. What nobody says is as the model has it.

    Machines that get another model get its figures, unless others are given.
    """
    if names_model := bool({"model", "miner_model_id"} & given.keys()):
        model = _wanted_model(conn, given.get("model"), given.get("miner_model_id"))
    else:
        model = miners.model(conn, before["miner_model_id"]) if before["miner_model_id"] else None
    facts = {**before, **given, "miner_model_id": model.id if model else None}
    for name, reference in (("actual_hashrate_th", "reference_hashrate_th"), ("actual_power_w", "reference_power_w")):
        if facts.get(name) is None or (names_model and model and name not in given):
            if model is None:
                raise BadInput(f"{name}: give it, or name a model of the catalogue.")
            facts[name] = getattr(model, reference)
    return MinerFacts(**{name: facts[name] for name in MinerFacts._fields})


def _wanted_model(conn: Connection, name: str | None, model_id: int | None) -> MinerModel | None:
    """Returns a model by its name or id. A name may leave out the variant in brackets if there is only one."""
    if name and model_id is not None:
        raise BadInput("Give model or miner_model_id, not both.")
    if model_id is not None:
        found = miners.model(conn, model_id)
        if found is None:
            raise UnknownModel(f"The catalogue has no model {model_id}. GET /api/miner-models lists it.")
        return found
    if not name:
        return None
    if found := miners.model_named(conn, name):
        return found
    models = {miners.model_key(one.model_name): one for one in miners.models(conn)}
    key = miners.model_key(name)
    variants = [one for known, one in models.items() if known.startswith(f"{key} (")]
    if len(variants) == 1:
        return variants[0]
    close = variants or [models[one] for one in difflib.get_close_matches(key, models, MOST_SUGGESTED, 0.5)]
    names = " or ".join(one.model_name for one in close[:MOST_SUGGESTED])
    hint = f"Did you mean {names}?" if names else "Name none, and give actual_hashrate_th and actual_power_w."
    raise UnknownModel(f"The catalogue has no model {name[:100]!r}. {hint}")


def _changed(present: Miner) -> ChangedMeanwhile:
    return ChangedMeanwhile(
        f"Machines {present.id} have revision {present.revision} by now. Read them again, then change them.",
        revision=present.revision,
    )


def models(conn: Connection) -> list[MinerModel]:
    """Returns the catalogue."""
    return miners.models(conn)


def ship_models(conn: Connection) -> None:
    """Adds the models that come with Headwater, and corrects them. What somebody imported stays as it is."""
    known = {ModelFacts(*one[1:6]) for one in miners.models(conn)}
    shipped = list(read_models((files("headwater") / "data" / "miner_models.csv").read_bytes()))
    if not known.issuperset(shipped):
        miners.save_models(conn, shipped, shipped=True)


def read_models(document: bytes) -> Iterator[ModelFacts]:
    for row in csv.DictReader(io.StringIO(document.decode())):
        hashrate, power = Decimal(row["reference_hashrate_th"]), Decimal(row["reference_power_w"])
        yield ModelFacts(row["model_name"], row["manufacturer"], hashrate, power, row["release_date"] or None)


class MinerModelJson(TypedDict):
    """A model of machines. Figures are what its maker says about one of them. Decimal numbers are texts."""

    id: Annotated[int, Example(16)]
    model_name: Annotated[str, Example("Antminer S19 Pro (110T)")]
    manufacturer: Annotated[str, Example("Bitmain")]
    reference_hashrate_th: Annotated[str, Example("110", "TH/s", of=lambda one: plain(one.reference_hashrate_th))]
    reference_power_w: Annotated[str, Example("3250", "watts", of=lambda one: plain(one.reference_power_w))]
    release_date: Annotated[
        str | None, Example("2020-05", "a year, a month or a day, as far as it is known; null: unknown")
    ]


class MinerModelsJson(TypedDict):
    """The catalogue."""

    items: list[MinerModelJson]


class MinerJson(TypedDict):
    """Machines of one kind at one place. Figures are those of one machine. Decimal numbers are texts, and exact."""

    id: Annotated[int, Example(7)]
    miner_model_id: Annotated[int | None, Example(16, "their model; null: one that the catalogue does not have")]
    model: Annotated[str | None, Example("Antminer S19 Pro (110T)")]
    manufacturer: Annotated[str | None, Example("Bitmain")]
    name: Annotated[str, Example("", "what you call them")]
    site: Annotated[str, Example("Hall 2", "where they are")]
    pool: Annotated[str, Example("", "the pool they mine for")]
    quantity: Annotated[int, Example(40)]
    actual_hashrate_th: Annotated[str, Example("110", "TH/s", of=lambda one: plain(one.actual_hashrate_th))]
    actual_power_w: Annotated[str, Example("3250", "watts", of=lambda one: plain(one.actual_power_w))]
    electricity_usd_per_kwh: Annotated[str, Example("0.055", of=lambda one: plain(one.electricity_usd_per_kwh))]
    purchase_usd: Annotated[
        str | None, Example("2400", "what one cost; null: unknown", of=lambda one: plain(one.purchase_usd))
    ]
    revision: Annotated[int, Example(3, "send it with a change, which is then refused if somebody came before you")]
    created_at: Annotated[Time, Example("2026-01-05T08:00:00Z")]
    updated_at: Annotated[Time, Example("2026-01-07T09:30:01Z")]
