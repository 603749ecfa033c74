"""Trades that were entered wrongly: cancelled or corrected as a new fact, once, with a record, and never so that more
was sold than there was (E8)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from api.running import Answer, Client, Running
from fleet.correcting import CORRECT_UNTIL_KILLED, CORRECTED
from fleet.taking_in import take_in
from headwater.accounts import tokens
from headwater.app.fleet import treasury
from headwater.app.fleet.treasury import NewTrade, WantedCorrection
from headwater.app.instance import owner
from headwater.errors import NotEnoughCoins
from headwater.fleet.inventory import METHODS, Trade, settle
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.tables import audit_log, event_outbox, trade_corrections, treasury_trades
from headwater.wire import Parts
from support import forked
from support.posts import NOON
from support.processes import kill, start
from support.tenants import another_tenant

BOUGHT = {"side": "buy", "btc": "5", "usd": "30000", "traded_at": "2024-03-01T12:00:00Z"}
SOLD = {"side": "sell", "btc": "0.2", "usd": "15000", "traded_at": "2024-03-02T12:00:00Z"}
RIGHT = {"side": "buy", "btc": "0.5", "usd": "30000"}


def entered(client: Client, body: dict[str, Any], key: str) -> int:
    trade_id: int = client.post("/api/treasury/trade", body, Idempotency_Key=key).json()["id"]
    return trade_id


def correct(client: Client, trade_id: int, body: dict[str, Any], key: str) -> Answer:
    return client.post(f"/api/treasury/trades/{trade_id}/correction", body, Idempotency_Key=key)


def listed(client: Client, method: str = "fifo") -> list[tuple[str, str, str]]:
    found = client.get(f"/api/treasury/trades?method={method}").json()["items"]
    return [(one["trade"]["side"], one["trade"]["btc"], one["cost_after_usd"]) for one in found]


def rows(parts: Parts, table: Any, *conditions: Any) -> int:
    count = select(func.count()).select_from(table).where(*conditions)
    return parts.db.read_now(lambda conn: conn.execute(count).scalar_one())


def test_a_corrected_trade_counts_as_it_should_have_been_entered(on_both: Running) -> None:
    client, parts = on_both.program(), on_both.parts
    wrong = entered(client, BOUGHT, "1")
    entered(client, SOLD, "2")
    answer = correct(client, wrong, {"trade": RIGHT, "reason": "a place too many"}, "c1")
    assert answer.status == 201, answer.text
    done = answer.json()
    assert (done["trade"]["btc"], done["instead"]["btc"], done["reason"]) == ("5", "0.5", "a place too many")
    assert done["instead"]["traded_at"] == "2024-03-01T12:00:00Z", "it was at the same time"
    for method in METHODS:
        assert listed(client, method) == [("sell", "0.2", "18000"), ("buy", "0.5", "30000")]
    assert correct(client, wrong, {"trade": RIGHT, "reason": "a place too many"}, "c1").json() == done, "the same again"
    assert entered(client, BOUGHT, "1") == wrong, "what is sent again is not entered again"
    take_in(parts)
    assert client.get("/analytics/main").json()["portfolio"]["btc_inventory"] == "0.3"
    assert client.get("/api/treasury/corrections").json()["items"] == [done]
    assert rows(parts, treasury_trades) == 3
    assert rows(parts, event_outbox, event_outbox.c.kind == "treasury.corrected") == 1
    assert rows(parts, audit_log, audit_log.c.action == "trade.correct") == 1


def test_a_cancelled_trade_does_not_count_and_stays_on_record(on_both: Running) -> None:
    client = on_both.program()
    twice = entered(client, BOUGHT, "1")
    entered(client, {**BOUGHT, "btc": "1"}, "2")
    done = correct(client, twice, {"reason": "entered twice"}, "c1").json()
    assert (done["instead"], done["trade"]["id"]) == (None, twice)
    assert [one[1] for one in listed(client)] == ["1"]
    assert rows(on_both.parts, audit_log, audit_log.c.action == "trade.cancel") == 1
    again = correct(client, twice, {}, "c2")
    assert (again.status, again.json()["code"]) == (409, "already_corrected")


def test_what_would_sell_more_than_there_was_is_refused_and_changes_nothing(on_both: Running) -> None:
    client = on_both.program()
    bought = entered(client, BOUGHT, "1")
    sold = entered(client, SOLD, "2")
    entered(client, {**BOUGHT, "traded_at": "2024-03-03T12:00:00Z"}, "3")  # later coins do not help
    before = listed(client)
    refused = [
        (correct(client, bought, {}, "c1"), 422, "not_enough_coins"),
        (correct(client, bought, {"trade": {**RIGHT, "btc": "0.1"}}, "c2"), 422, "not_enough_coins"),
        (
            correct(client, bought, {"trade": {**RIGHT, "traded_at": "2024-03-02T13:00:00Z"}}, "c3"),
            422,
            "not_enough_coins",
        ),
        (correct(client, sold, {"trade": {**SOLD, "btc": "6", "traded_at": None}}, "c4"), 422, "not_enough_coins"),
        (correct(client, bought, {"trade": BOUGHT}, "c5"), 422, "bad_input"),
        (correct(client, bought, {"trade": {**RIGHT, "btc": "NaN"}}, "c6"), 422, "bad_input"),
        (correct(client, bought, {"trade": {**RIGHT, "traded_at": "2999-01-01T00:00:00Z"}}, "c7"), 422, "bad_input"),
        (correct(client, bought, {"trade": RIGHT}, ""), 422, "bad_input"),
        (correct(client, bought, {"trade": RIGHT}, "2"), 422, "key_reused"),
        (correct(client, bought, {"trad": RIGHT}, "c8"), 422, "bad_input"),
        (correct(client, 999, {"trade": RIGHT}, "c9"), 404, "not_found"),
    ]
    for answer, status, code in refused:
        assert (answer.status, answer.json()["code"]) == (status, code), answer.text
    assert listed(client) == before
    assert rows(on_both.parts, trade_corrections) == 0


def test_somebody_elses_trade_cannot_be_corrected(on_both: Running) -> None:
    db = on_both.parts.db
    trade_id = entered(on_both.program(), BOUGHT, "1")
    other = db.write_now(another_tenant)
    token = db.write_now(tokens.issue, other, "api", "t", on_both.parts.now())
    theirs = Client(on_both.port, {"Authorization": f"Bearer {token}"})
    assert correct(theirs, trade_id, {}, "c1").status == 404
    assert theirs.get("/api/treasury/corrections").json()["items"] == []


def test_a_correction_can_be_corrected_and_the_key_of_one_is_not_anothers(headwater: Running) -> None:
    client = headwater.program()
    first = entered(client, BOUGHT, "1")
    second = correct(client, first, {"trade": RIGHT}, "c1").json()["instead"]["id"]
    assert correct(client, second, {"trade": {**RIGHT, "usd": "1"}}, "c1").json()["code"] == "key_reused"
    assert correct(client, first, {"trade": {**RIGHT, "usd": "1"}}, "c2").json()["detail"].endswith("correct that one.")
    third = correct(client, second, {"trade": {**RIGHT, "usd": "31000"}}, "c3").json()["instead"]["id"]
    assert listed(client) == [("buy", "0.5", "31000")]
    assert correct(client, third, {}, "c4").status == 201
    assert listed(client) == []


def test_trades_are_corrected_in_the_terminal(sqlite_url: str, tmp_path: Path) -> None:
    environ = {**os.environ, "HEADWATER_DATABASE_URL": sqlite_url, "HEADWATER_DATA_DIR": str(tmp_path / "data")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return forked.run("-m", "headwater", "fleet", *words, env=environ)

    run("trade", "buy", "5", "30000", "--key", "1")
    assert "Trade 2 does" in run("correct", "1", "buy", "0.5", "30000").stdout
    assert "no longer counts" in run("cancel", "2", "--reason", "never was").stdout
    assert run("trades", "--json").stdout == ""
    assert run("cancel", "2").returncode != 0


def test_trades_are_corrected_on_the_page_once_however_often_the_form_is_sent(headwater: Running) -> None:
    browser = headwater.browser()
    trade_id = entered(headwater.program(), BOUGHT, "1")
    page = browser.get("/fleet").text
    [key] = re.findall(r'name="idempotency_key" value="([^"]+)"', page)
    form_key = re.findall(r'name="form_key" value="([^"]+)"', page)[0]
    form = f"form_key={form_key}&idempotency_key={key}&side=buy&btc=0.5&usd=30000&reason=typo&action=correct".encode()
    as_form = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}
    for _ in range(2):
        sent = browser("POST", f"/fleet/trades/{trade_id}/correction", form, **as_form)
        assert (sent.status, sent.headers["location"]) == (303, "/fleet#trades"), sent.text
    assert listed(headwater.program()) == [("buy", "0.5", "30000")]
    assert "typo" in browser.get("/fleet").text


Step = tuple[str, int, int, int]
SIDES: tuple[Literal["buy", "sell"], ...] = ("buy", "sell")
a_step = st.tuples(
    st.sampled_from(["buy", "sell", "cancel", "correct"]), st.integers(1, 5), st.integers(0, 9), st.integers(0, 30)
)


def is_possible(trades: Iterable[Trade]) -> bool:
    left = Decimal(0)
    for one in sorted(trades, key=lambda one: (one.at, int(one.id))):
        left += one.btc if one.side != "sell" else -one.btc
        if left < 0:
            return False
    return True


@settings(max_examples=20)
@given(st.lists(a_step, max_size=12))
def test_whatever_is_corrected_equals_having_entered_it_right(sqlite_schema: Path, steps: list[Step]) -> None:
    """Compared with a list of trades in which what is corrected is simply replaced."""
    with TemporaryDirectory() as folder:
        shutil.copy(sqlite_schema, f"{folder}/headwater.db")
        db = Database(f"sqlite:///{folder}/headwater.db")
        reader, model = owner(db), dict[int, Trade]()
        for number, (what, btc, which, minute) in enumerate(steps):
            _take(db, reader, model, number, what, btc, which, NOON + timedelta(minutes=minute))
        wanted = sorted(model.values(), key=lambda one: (one.at, int(one.id)))
        for method in METHODS:
            found = db.read_now(treasury.every, reader, method)[::-1]
            assert [one.settled for one in found] == list(settle(wanted, method).settled)
        db.close()


def _take(
    db: Database, reader: Reader, model: dict[int, Trade], number: int, what: str, btc: int, which: int, at: datetime
) -> None:
    """Does one step in the store and in the model. What the model cannot do, the store has to refuse."""
    now, usd = NOON + timedelta(days=1), Decimal(100 + number)
    after, old = dict(model), sorted(model)[which % len(model)] if model else None
    if what in SIDES:
        after[10**6] = Trade(what, Decimal(btc), usd, at, str(10**6))  # type: ignore[arg-type]
        entered = NewTrade(side=what, btc=btc, usd=usd, traded_at=at)  # type: ignore[arg-type]
        do: Callable[[], int | None] = lambda: db.write_now(treasury.trade, reader, entered, str(number), now).id  # noqa: E731
    elif old is None:
        return
    else:
        before = after.pop(old)
        right = NewTrade(side=before.side, btc=btc, usd=usd, traded_at=at) if what == "correct" else None
        if right:
            after[10**6] = Trade(before.side, Decimal(btc), usd, at, str(10**6))

        def do() -> int | None:
            wanted = WantedCorrection(trade=right)
            done = db.write_now(treasury.correct, reader, old, wanted, str(number), now)
            return done.instead.id if done.instead else None

    if not is_possible(after.values()):
        with pytest.raises(NotEnoughCoins):
            do()
        return
    new_id = do()
    if new_id is not None:
        after[new_id] = after.pop(10**6)._replace(id=str(new_id))
    model.clear()
    model.update(after)


def test_killed_again_and_again_every_trade_is_corrected_once(parts: Parts, environ: dict[str, str]) -> None:
    reader = owner(parts.db)
    for last in (0, 5, 6, None):
        process = start(environ, CORRECT_UNTIL_KILLED, says="correcting")
        assert process.stdout is not None
        for line in process.stdout:
            if line == ("done\n" if last is None else f"{last}\n"):
                break
        if last is not None:
            kill(process)
        process.wait()
        process.stdout.close()
    found = parts.db.read_now(treasury.every, reader, "fifo")
    assert [one.trade.btc for one in found] == [Decimal(2)] * CORRECTED
    assert rows(parts, trade_corrections) == rows(parts, event_outbox, event_outbox.c.kind == "treasury.corrected")
    assert (rows(parts, trade_corrections), rows(parts, treasury_trades)) == (CORRECTED, 2 * CORRECTED)
