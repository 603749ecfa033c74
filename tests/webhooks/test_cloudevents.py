"""Events as CloudEvents 1.0 describes them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from headwater.events import catalogue
from headwater.events.catalogue import SOURCE_RETIRED, SourceFacts
from headwater.store.log.outbox import LoggedEvent, LogPosition
from support.posts import NOON

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DATA = SOURCE_RETIRED(SourceFacts(source_id=7, address="https://news.example/é"), once="7").data


def an_event(position: LogPosition = LogPosition(0, 42), traceparent: str | None = PARENT) -> LoggedEvent:
    return LoggedEvent(
        position, "019a-id", "source.retired", 1, "source:7", None, None, traceparent, NOON, DATA
    )  # fmt: skip


def test_the_document_has_every_attribute_and_the_data_inside() -> None:
    assert json.loads(catalogue.cloudevent(an_event(), "https://headwater.example")) == {
        "specversion": "1.0",
        "id": "019a-id",
        "source": "https://headwater.example",
        "type": "source.retired",
        "time": "2026-11-02T12:00:00Z",
        "partitionkey": "source:7",
        "sequence": "0000000000000000000000000000002a",
        "dataversion": "1",
        "traceparent": PARENT,
        "datacontenttype": "application/json",
        "data": {"source_id": 7, "address": "https://news.example/é"},
    }


def test_the_attributes_beside_the_data_are_the_same_with_a_prefix() -> None:
    document = json.loads(catalogue.cloudevent(an_event(), "headwater"))
    headers = catalogue.cloudevent_headers(an_event(), "headwater", "ce-")
    assert headers == {
        f"ce-{name}": document[name] for name in document if not name.startswith("data") or name == "dataversion"
    }
    assert set(catalogue.cloudevent_headers(an_event(), "headwater", "ce_")) == {
        name.replace("-", "_") for name in headers
    }


def test_names_and_values_are_ones_that_headers_can_carry() -> None:
    for name, value in catalogue.cloudevent_headers(an_event(), "https://näws.example/a b", "").items():
        assert re.fullmatch(r"[a-z0-9]{1,20}", name)
        assert re.fullmatch(r"[!-~]+", value), value


def test_an_event_that_is_part_of_no_trace_says_nothing_of_one() -> None:
    assert "traceparent" not in catalogue.cloudevent_headers(an_event(traceparent=None), "headwater", "")


def test_sequences_sort_as_text_in_the_order_of_the_log() -> None:
    places = [
        LogPosition(0, 9),
        LogPosition(0, 10),
        LogPosition(1, 1),
        LogPosition(2**40, 0),
        LogPosition(2**40, 2**62),
    ]
    said = [catalogue.cloudevent_headers(an_event(place), "headwater", "")["sequence"] for place in places]
    assert sorted(said) == said


def test_times_are_utc() -> None:
    event = an_event()._replace(created_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))
    assert catalogue.cloudevent_headers(event, "headwater", "")["time"] == "2026-01-02T03:04:05.678901Z"
