"""Every kind of event, one declaration each. `docs/reference/events.md` is generated from here.

To add a kind, declare its payload and the kind. Append the event where the change is made, in the same transaction:

    outbox.append(conn, [SOURCE_ADDED(SourceFacts(source_id=7, address="https://…"), once="7")], now)

A new field of a payload needs a default. Any other change is a new version of the kind.

To the outside, events are CloudEvents 1.0: one JSON document, or headers beside the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, NamedTuple, Self, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Meta

from headwater.errors import UnreadableEvent
from headwater.model import Event, Reader
from headwater.store.log.outbox import LoggedEvent

CLOUDEVENTS_TYPE = "application/cloudevents+json"
_URI_SAFE = ":/?#[]@!$&'()*+,;=%~"


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """The data of an event. Each field has a description."""

    @classmethod
    def of(cls, row: object, **more: Any) -> Self:
        """Takes the fields from the attributes of a row. `more` are values that the row does not have."""
        return cls(**{name: getattr(row, name) for name in cls.__struct_fields__ if name not in more}, **more)


class Field(NamedTuple):
    name: str
    meaning: str


class PostFacts(Payload, frozen=True):
    post_id: Annotated[int, Meta(description="the post")]
    source_id: Annotated[int, Meta(description="the source that published it")]
    source_post_id: Annotated[str, Meta(description="its id within the source")]
    version: Annotated[int, Meta(description="1 for the first text, plus one for each edit")]
    title: Annotated[str, Meta(description="its title")]
    url: Annotated[str | None, Meta(description="its address, or null")]
    created_at: Annotated[datetime, Meta(description="when it was published, ISO 8601")]


class SourceFacts(Payload, frozen=True):
    source_id: Annotated[int, Meta(description="the source")]
    address: Annotated[str, Meta(description="its address")]


class SourceTrouble(SourceFacts, frozen=True):
    status: Annotated[str, Meta(description="failing, blocked or empty")]
    error: Annotated[str, Meta(description="what happened, for people")]


class SubscriptionEnd(Payload, frozen=True):
    source_id: Annotated[int, Meta(description="the source")]


class Joining(Payload, frozen=True):
    story_id: Annotated[int, Meta(description="the story; its id is that of its first post")]
    post_id: Annotated[int, Meta(description="the post that joined it")]
    source_id: Annotated[int, Meta(description="the source of that post")]
    repeat_of: Annotated[int | None, Meta(description="the post whose text it repeats, or null")]
    rule: Annotated[str, Meta(description="exact, similar or story (the same event in other words)")]
    score: Annotated[float, Meta(description="how certain that is, from 0 to 1")]
    why: Annotated[str, Meta(description="the reason, for people")]


class Parting(Payload, frozen=True):
    story_id: Annotated[int, Meta(description="the story")]
    post_ids: Annotated[list[int], Meta(description="the posts that left it")]


class RunFacts(Payload, frozen=True):
    task_id: Annotated[str, Meta(description="the run")]
    status: Annotated[str, Meta(description="completed, or proposed: nothing was written")]
    decided: Annotated[int, Meta(description="how many posts it decided about")]
    already_decided: Annotated[int, Meta(description="how many posts were already decided")]
    joined: Annotated[int, Meta(description="how many became part of a story")]
    degraded: Annotated[str | None, Meta(description="why only exact repeats were found for some posts, or null")]


class AlertFacts(Payload, frozen=True):
    alert: Annotated[str, Meta(description="what is watched: api_calls, cache_hits or stale_sources")]
    detail: Annotated[str, Meta(description="what is wrong, for people; for a cleared alert, what was wrong")]
    raised_at: Annotated[datetime, Meta(description="when it was raised, ISO 8601")]


class MarketFacts(Payload, frozen=True):
    market: Annotated[str, Meta(description="the coin")]
    first_day: Annotated[date, Meta(description="the first day that is new or corrected, ISO 8601")]
    last_day: Annotated[date, Meta(description="the last one")]
    days: Annotated[int, Meta(description="how many days are new or corrected")]
    origin: Annotated[str, Meta(description="where the figures come from: an address or a file")]


class ForecastFacts(Payload, frozen=True):
    market: Annotated[str, Meta(description="the coin")]
    made_on: Annotated[date, Meta(description="the last day that the forecast is based on, ISO 8601")]
    version: Annotated[int, Meta(description="1, plus one for each correction of the days before")]
    model: Annotated[str, Meta(description="how it was made")]
    days: Annotated[int, Meta(description="how many days ahead it reaches")]


class MachineFacts(Payload, frozen=True):
    miner_id: Annotated[int, Meta(description="the machines")]
    model: Annotated[str | None, Meta(description="their model in the catalogue, or null")]
    name: Annotated[str, Meta(description="what their owner calls them")]
    site: Annotated[str, Meta(description="where they are")]
    pool: Annotated[str, Meta(description="the pool they mine for")]
    quantity: Annotated[int, Meta(description="how many machines")]
    actual_hashrate_th: Annotated[Decimal, Meta(description="TH/s of one machine, as text")]
    actual_power_w: Annotated[Decimal, Meta(description="watts of one machine, as text")]
    electricity_usd_per_kwh: Annotated[Decimal, Meta(description="what power costs, as text")]
    revision: Annotated[int, Meta(description="1 when they are added, plus one for each change")]


class MachineEnd(Payload, frozen=True):
    miner_id: Annotated[int, Meta(description="the machines")]


class TradeEvent(Payload, frozen=True):
    trade_id: Annotated[int, Meta(description="the trade")]
    side: Annotated[str, Meta(description="buy, mine or sell")]
    btc: Annotated[Decimal, Meta(description="how many coins, as text")]
    usd: Annotated[Decimal, Meta(description="what they cost or earned, including fees, as text")]
    traded_at: Annotated[datetime, Meta(description="when, ISO 8601")]


class CorrectionFacts(Payload, frozen=True):
    trade_id: Annotated[int, Meta(description="the trade that no longer counts")]
    replaced_by: Annotated[int | None, Meta(description="the trade that counts instead, or null")]
    reason: Annotated[str, Meta(description="why, in the user's words")]


class PortfolioFacts(Payload, frozen=True):
    btc_inventory: Annotated[Decimal, Meta(description="coins in the inventory, as text")]
    monthly_opex_usd: Annotated[Decimal, Meta(description="what power costs in a month, as text")]
    profit_usd_per_day: Annotated[
        Decimal | None,
        Meta(description="what machines earn in a day minus their power, as text; null without market figures"),
    ]
    changes: Annotated[int, Meta(description="how many changes were included at once")]
    milliseconds: Annotated[float, Meta(description="how long the first of them waited")]


class MinerTrouble(Payload, frozen=True):
    miner_id: Annotated[int, Meta(description="the machines")]
    name: Annotated[str, Meta(description="what their owner calls them")]
    site: Annotated[str, Meta(description="where they are")]
    state: Annotated[str, Meta(description="silent (no readings arrive), low (below their rate) or ok")]
    hashrate_th: Annotated[float | None, Meta(description="TH/s over their last half hour, or null")]
    expected_th: Annotated[float, Meta(description="TH/s that all of them should have together")]
    last_heard_at: Annotated[datetime, Meta(description="when a reading was last received, ISO 8601")]


class DeadEvent(Payload, frozen=True):
    consumer: Annotated[str, Meta(description="the consumer that could not handle it")]
    event_id: Annotated[str, Meta(description="the event")]
    event_kind: Annotated[str, Meta(description="its kind")]
    event_key: Annotated[str, Meta(description="its key")]
    event_created_at: Annotated[datetime, Meta(description="when it was published, ISO 8601")]
    payload: Annotated[str, Meta(description="its data, as text")]
    error: Annotated[str, Meta(description="why the last attempt failed, for people")]
    attempts: Annotated[int, Meta(description="how often it was tried")]


P = TypeVar("P", bound=Payload)


class EventKind(Generic[P]):
    """A kind of event. Events with the same value of the field `key` stay in order, such as those of one source.

    Its domain, which is a topic of Kafka, is the first part of its name unless `domain` says otherwise.
    """

    def __init__(
        self, name: str, payload: type[P], key: str, meaning: str, *, version: int = 1, domain: str = ""
    ) -> None:
        self.name, self.payload, self.key, self.meaning, self.version = name, payload, key, meaning, version
        self.domain = domain or name.partition(".")[0]
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(payload).decode

    def __call__(self, payload: P, *, once: str, reader: Reader | None = None) -> Event:
        """Makes the event. `once` identifies this fact within its kind, so that it is never published twice."""
        if self.key == "user_id":
            assert reader is not None, f"{self.name} needs a reader"
            key = f"user:{reader.user_id}"
        else:
            key = f"{self.key.removesuffix('_id')}:{getattr(payload, self.key)}"
        return Event(
            self.name,
            self.version,
            key,
            self._encode(payload).decode(),
            f"{self.name}:{once}",
            reader.tenant_id if reader else None,
            reader.user_id if reader else None,
            self.domain,
        )

    def read(self, event: LoggedEvent) -> P:
        """Returns the payload. Raises UnreadableEvent if it does not match this kind."""
        try:
            return self._decode(event.data)
        except msgspec.MsgspecError as error:
            raise UnreadableEvent(f"The event {event.event_id} is not a valid {self.name}: {error}") from error

    def fields(self) -> Iterator[Field]:
        for field in msgspec.structs.fields(self.payload):
            yield Field(field.name, next(note.description or "" for note in field.type.__metadata__))


POST_STORED = EventKind("post.stored", PostFacts, "source_id", "A post was seen for the first time and stored.")
POST_CHANGED = EventKind(
    "post.changed", PostFacts, "source_id", "The text of a stored post changed. The old text is kept as a version."
)
SOURCE_ADDED = EventKind("source.added", SourceFacts, "source_id", "A source is followed for the first time.")
SOURCE_FAILED = EventKind("source.failed", SourceTrouble, "source_id", "A source that worked has stopped working.")
SOURCE_BLOCKED = EventKind(
    "source.blocked", SourceTrouble, "source_id", "A source answers with a login or bot check instead of its posts."
)
SOURCE_RECOVERED = EventKind("source.recovered", SourceFacts, "source_id", "A source works again.")
SOURCE_RETIRED = EventKind(
    "source.retired", SourceFacts, "source_id", "A source is gone for good (410) and is no longer visited."
)
SUBSCRIBED = EventKind("subscription.added", SourceFacts, "user_id", "A reader started to follow a source.")
UNSUBSCRIBED = EventKind("subscription.removed", SubscriptionEnd, "user_id", "A reader stopped following a source.")
STORY_JOINED = EventKind("story.joined", Joining, "story_id", "A post joined a story.")
STORY_PARTED = EventKind("story.parted", Parting, "story_id", "A person took posts out of a story. They stay out.")
STORY_RUN_FINISHED = EventKind(
    "story.run_finished", RunFacts, "user_id", "A folding run that a reader requested has finished."
)
ALERT_RAISED = EventKind(
    "alert.raised", AlertFacts, "user_id", "Something is wrong with crawling. It goes to the person who runs Headwater."
)
ALERT_CLEARED = EventKind("alert.cleared", AlertFacts, "user_id", "A problem with crawling is over.")
MINER_OFFLINE = EventKind("miner.offline", MinerTrouble, "user_id", "Machines went silent, or fell below their rate.")
MINER_RECOVERED = EventKind("miner.recovered", MinerTrouble, "user_id", "Machines report again, at their rate.")
MARKET_UPDATED = EventKind(
    "market.updated",
    MarketFacts,
    "market",
    "Daily figures of the market and the chain are new, or were corrected.",
    domain="ops",
)
FORECAST_REFRESHED = EventKind(
    "forecast.refreshed", ForecastFacts, "market", "The forecast was updated with newer figures.", domain="ops"
)
MINER_ADDED = EventKind("miner.added", MachineFacts, "user_id", "A user has added machines.")
MINER_CHANGED = EventKind("miner.changed", MachineFacts, "user_id", "A user has changed machines.")
MINER_REMOVED = EventKind("miner.removed", MachineEnd, "user_id", "A user has removed machines.")
TRADED = EventKind("treasury.traded", TradeEvent, "user_id", "A user has entered a trade of coins.")
TRADE_CORRECTED = EventKind(
    "treasury.corrected", CorrectionFacts, "user_id", "A user has cancelled a trade or replaced it with another."
)
PORTFOLIO_RECALCULATED = EventKind(
    "portfolio.recalculated",
    PortfolioFacts,
    "user_id",
    "The figures of a user's machines and coins were recalculated.",
    domain="ops",
)
EVENT_DEAD = EventKind(
    "dlq.added",
    DeadEvent,
    "consumer",
    "A consumer gave up on an event, which is now a dead letter. `headwater dlq` replays or skips it.",
)

KINDS: tuple[EventKind[Any], ...] = (
    POST_STORED,
    POST_CHANGED,
    SOURCE_ADDED,
    SOURCE_FAILED,
    SOURCE_BLOCKED,
    SOURCE_RECOVERED,
    SOURCE_RETIRED,
    SUBSCRIBED,
    UNSUBSCRIBED,
    STORY_JOINED,
    STORY_PARTED,
    STORY_RUN_FINISHED,
    ALERT_RAISED,
    ALERT_CLEARED,
    MINER_OFFLINE,
    MINER_RECOVERED,
    MARKET_UPDATED,
    FORECAST_REFRESHED,
    MINER_ADDED,
    MINER_CHANGED,
    MINER_REMOVED,
    TRADED,
    TRADE_CORRECTED,
    PORTFOLIO_RECALCULATED,
    EVENT_DEAD,
)
BY_NAME = {kind.name: kind for kind in KINDS}
DOMAINS = tuple(dict.fromkeys(kind.domain for kind in KINDS))  # each is a topic of Kafka


def cloudevent(event: LoggedEvent, source: str) -> bytes:
    """Returns the event as one JSON document. `source` names this instance: its public address or another name."""
    data = {"datacontenttype": "application/json", "data": msgspec.Raw(event.data.encode())}
    return msgspec.json.encode(_attributes(event, source) | data)


def cloudevent_headers(event: LoggedEvent, source: str, prefix: str) -> dict[str, str]:
    """Returns the headers. They start with `ce-` in HTTP and with `ce_` in Kafka. All values are ASCII."""
    return {prefix + name: value for name, value in _attributes(event, source).items()}


def _attributes(event: LoggedEvent, source: str) -> dict[str, str]:
    found = {
        "specversion": "1.0",
        "id": event.event_id,
        "source": quote(source, safe=_URI_SAFE),
        "type": event.kind,
        "time": event.created_at.isoformat().replace("+00:00", "Z"),
        "partitionkey": event.key,
        # The specification asks for a sequence that sorts as text.
        "sequence": f"{event.position.xid:016x}{event.position.id:016x}",
        "dataversion": str(event.version),
    }
    return found | {"traceparent": event.traceparent} if event.traceparent else found
