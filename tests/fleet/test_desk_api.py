"""Machines and trades over HTTP: what is entered is there, once and exactly; what is wrong is named and changes nothing
(E8)."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import func, select

from api.running import Answer, Client, Running
from headwater.accounts import tokens
from headwater.app.fleet.miners import ship_models
from headwater.app.shapes import iso
from headwater.store.fleet import miners
from headwater.store.fleet.miners import ModelFacts
from headwater.store.tables import event_outbox, treasury_trades, user_miners
from support.tenants import another_tenant

FLEET = {"model": "Antminer S19 Pro", "quantity": 40, "site": "Hall 2", "electricity_usd_per_kwh": "0.055"}
BOUGHT = {"side": "buy", "btc": "0.25", "usd": "17350.40", "traded_at": "2024-03-01T12:00:00Z"}


def trade(client: Client, body: dict[str, Any], key: str) -> Answer:
    return client.post("/api/treasury/trade", body, Idempotency_Key=key)


def rows(headwater: Running, table: Any) -> int:
    return headwater.parts.db.read_now(lambda conn: conn.execute(select(func.count()).select_from(table)).scalar_one())


def kinds(headwater: Running) -> list[tuple[str, str]]:
    """The domain and the kind of every event of machines and trades, in order."""
    wanted = event_outbox.c.domain.in_(["miner", "treasury"])
    query = select(event_outbox.c.domain, event_outbox.c.kind).where(wanted).order_by(event_outbox.c.id)
    return headwater.parts.db.read_now(lambda conn: [tuple(row) for row in conn.execute(query)])


def test_machines_are_added_changed_and_removed_each_with_its_event(on_both: Running) -> None:
    client = on_both.program()
    added = client.post("/api/miners", FLEET)
    assert added.status == 201
    found = added.json()
    assert (found["model"], found["manufacturer"]) == ("Antminer S19 Pro (110T)", "Bitmain")
    assert (found["actual_hashrate_th"], found["actual_power_w"]) == ("110", "3250")  # as the model has it
    assert (found["electricity_usd_per_kwh"], found["revision"]) == ("0.055", 1)
    changed = client.patch(f"/api/miners/{found['id']}", {"electricity_usd_per_kwh": 0.061, "purchase_usd": "2400.5"})
    assert changed.json()["electricity_usd_per_kwh"] == "0.061"
    assert (changed.json()["purchase_usd"], changed.json()["revision"]) == ("2400.5", 2)
    assert client.get(f"/api/miners/{found['id']}").json() == changed.json()
    assert client.get("/api/miners").json() == {"items": [changed.json()], "next_cursor": None}
    assert client("DELETE", f"/api/miners/{found['id']}").status == 204
    assert client.get(f"/api/miners/{found['id']}").status == 404
    assert kinds(on_both) == [("miner", "miner.added"), ("miner", "miner.changed"), ("miner", "miner.removed")]


def test_a_change_that_changes_nothing_has_no_event_and_no_revision(headwater: Running) -> None:
    client = headwater.program()
    mine = client.post("/api/miners", FLEET).json()
    same = client.patch(f"/api/miners/{mine['id']}", {"quantity": 40, "electricity_usd_per_kwh": "0.0550"}).json()
    assert same == mine
    assert kinds(headwater) == [("miner", "miner.added")]


def test_machines_of_no_catalogue_need_their_figures(program: Client) -> None:
    own = {"name": "Garage rig", "electricity_usd_per_kwh": 0.1, "actual_power_w": 1000}
    refused = program.post("/api/miners", own)
    assert refused.status == 422
    assert "actual_hashrate_th" in refused.json()["detail"]
    made = program.post("/api/miners", {**own, "actual_hashrate_th": "12.5"}).json()
    assert (made["model"], made["actual_hashrate_th"]) == (None, "12.5")


def test_machines_get_the_figures_of_their_new_model(program: Client) -> None:
    mine = program.post("/api/miners", FLEET).json()
    other = program.patch(f"/api/miners/{mine['id']}", {"model": "Antminer S21 (200T)"}).json()
    assert (other["actual_hashrate_th"], other["actual_power_w"]) == ("200", "3500")
    tuned = program.patch(f"/api/miners/{mine['id']}", {"model": "antminer  t21", "actual_power_w": "3000"}).json()
    assert (tuned["model"], tuned["actual_hashrate_th"], tuned["actual_power_w"]) == (
        "Antminer T21 (190T)",
        "190",
        "3000",
    )
    usual = program.patch(f"/api/miners/{mine['id']}", {"actual_power_w": None}).json()
    assert usual["actual_power_w"] == "3610"


def test_two_windows_do_not_undo_each_others_changes(on_both: Running) -> None:
    """Changes of different fields both hold. A change that names an older revision is refused, and says so."""
    client = on_both.program()
    mine = client.post("/api/miners", FLEET).json()
    address = f"/api/miners/{mine['id']}"
    assert client.patch(address, {"site": "Hall 3"}).status == 200
    assert client.patch(address, {"quantity": 41}).json()["site"] == "Hall 3"
    late = client.patch(address, {"quantity": 1, "revision": 1})
    assert (late.status, late.json()["code"], late.json()["revision"]) == (409, "changed_meanwhile", 3)
    assert client.patch(address, {"quantity": 42, "revision": 3}).json()["quantity"] == 42


def test_changes_at_one_moment_lose_nothing_and_none_is_refused(on_both: Running) -> None:
    mine = on_both.program().post("/api/miners", FLEET).json()
    token = on_both.token()
    fields = [{"site": "Hall 9"}, {"pool": "Some pool"}, {"name": "Rack"}, {"quantity": 77}]
    answers: list[int] = []

    def send(change: dict[str, Any]) -> None:
        client = Client(on_both.port, {"Authorization": f"Bearer {token}"})
        answers.append(client.patch(f"/api/miners/{mine['id']}", change).status)

    threads = [threading.Thread(target=send, args=(change,)) for change in fields]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = on_both.program().get(f"/api/miners/{mine['id']}").json()
    assert answers == [200] * 4
    assert {name: after[name] for change in fields for name in change} == {k: v for c in fields for k, v in c.items()}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"actual_power_w": -1}, "actual_power_w"),
        ({"actual_hashrate_th": 0}, "actual_hashrate_th"),
        ({"actual_hashrate_th": "NaN"}, "actual_hashrate_th"),
        ({"electricity_usd_per_kwh": "Infinity"}, "electricity_usd_per_kwh"),
        ({"electricity_usd_per_kwh": "-0.01"}, "electricity_usd_per_kwh"),
        ({"electricity_usd_per_kwh": "1e400"}, "electricity_usd_per_kwh"),
        ({"electricity_usd_per_kwh": "1e-400000"}, "electricity_usd_per_kwh"),
        ({"electricity_usd_per_kwh": True}, "electricity_usd_per_kwh"),
        ({"electricity_usd_per_kwh": None}, "electricity_usd_per_kwh"),
        ({"electricity_usd_per_kwh": "0.0000000001"}, "electricity_usd_per_kwh"),
        ({"quantity": 0}, "quantity"),
        ({"quantity": 1.5}, "quantity"),
        ({"quantity": "40"}, "quantity"),
        ({"quantity": 10**9}, "quantity"),
        ({"purchase_usd": "twelve"}, "purchase_usd"),
        ({"site": "x" * 201}, "site"),
        ({"electricity_cost": 0.1}, "electricity_cost"),
        ({"miner_model_id": 999_999}, "model"),
        ({"model": "Antminer S21", "miner_model_id": 1}, "model"),
        ({"model": "Antminer X99"}, "model"),
    ],
)
def test_bad_figures_of_machines_are_named_and_change_nothing(
    on_both: Running, change: dict[str, Any], field: str
) -> None:
    client = on_both.program()
    mine = client.post("/api/miners", FLEET).json()
    for answer in (client.post("/api/miners", {**FLEET, **change}), client.patch(f"/api/miners/{mine['id']}", change)):
        assert answer.status == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert field in answer.json()["detail"]
    assert client.get("/api/miners").json()["items"] == [mine]
    assert (rows(on_both, user_miners), len(kinds(on_both))) == (1, 1)


def test_an_unknown_model_is_answered_with_those_that_are_meant(program: Client) -> None:
    close = program.post("/api/miners", {**FLEET, "model": "Antminer S19j Pro"}).json()
    assert close["code"] == "unknown_model"
    assert "S19j Pro (100T) or Antminer S19j Pro (104T)" in close["detail"]
    far = program.post("/api/miners", {**FLEET, "model": "zzzz"}).json()
    assert "actual_hashrate_th" in far["detail"]


def test_the_catalogue_ships_and_keeps_what_was_imported(on_both: Running) -> None:
    client, db = on_both.program(), on_both.parts.db
    models = {one["model_name"]: one for one in client.get("/api/miner-models").json()["items"]}
    assert len(models) > 50
    assert models["Antminer S9 (13.5T)"]["reference_power_w"] == "1323"
    corrected = ModelFacts("antminer S9 (13.5T)", "Bitmain", Decimal("13.2"), Decimal(1330), None)
    db.write_now(miners.save_models, [corrected])
    db.write_now(ship_models)
    again = {one["model_name"]: one for one in client.get("/api/miner-models").json()["items"]}
    assert (len(again), again["antminer S9 (13.5T)"]["reference_power_w"]) == (len(models), "1330")


def test_a_trade_is_entered_once_however_often_it_is_sent(on_both: Running) -> None:
    client = on_both.program()
    first = trade(client, BOUGHT, "key 1")
    assert first.status == 201
    assert (first.json()["btc"], first.json()["usd"]) == ("0.25", "17350.4")
    again = trade(client, {**BOUGHT, "btc": 0.25, "usd": "17350.4", "traded_at": "2024-03-01T13:00:00+01:00"}, "key 1")
    assert (again.status, again.json()) == (201, first.json())
    other = trade(client, {**BOUGHT, "btc": "0.26"}, "key 1")
    assert (other.status, other.json()["code"]) == (422, "key_reused")
    assert trade(client, BOUGHT, "key 2").json()["id"] != first.json()["id"]
    assert rows(on_both, treasury_trades) == 2
    assert kinds(on_both) == [("treasury", "treasury.traded")] * 2


def test_a_trade_without_a_time_is_of_now_and_is_also_entered_once(program: Client) -> None:
    now = {"side": "mine", "btc": "0.00000001", "usd": 0}
    first = trade(program, now, "same")
    assert first.json()["traded_at"] == first.json()["created_at"]
    assert trade(program, now, "same").json() == first.json()


def test_one_trade_sent_by_many_at_once_is_entered_once(on_both: Running) -> None:
    token = on_both.token()
    answers: list[Answer] = []

    def send() -> None:
        answers.append(trade(Client(on_both.port, {"Authorization": f"Bearer {token}"}), BOUGHT, "the same"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(answer.status, answer.text) for answer in answers} == {(201, answers[0].text)}
    assert rows(on_both, treasury_trades) == 1


def test_two_sales_at_one_moment_cannot_sell_the_same_coins(on_both: Running) -> None:
    trade(on_both.program(), BOUGHT, "buy")
    token = on_both.token()
    statuses: list[int] = []

    def sell(key: str) -> None:
        client = Client(on_both.port, {"Authorization": f"Bearer {token}"})
        statuses.append(trade(client, {"side": "sell", "btc": "0.2", "usd": 14_000}, key).status)

    threads = [threading.Thread(target=sell, args=(f"sale {number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201, 422, 422, 422]


def test_more_than_there_is_cannot_be_sold_now_nor_then(on_both: Running) -> None:
    client = on_both.program()
    trade(client, BOUGHT, "buy")
    sold = {"side": "sell", "btc": "0.25", "usd": 20_000, "traded_at": "2024-06-01T00:00:00Z"}
    assert trade(client, {**sold, "btc": "0.25000001"}, "a").json()["code"] == "not_enough_coins"
    assert trade(client, {**sold, "traded_at": "2024-02-01T00:00:00Z"}, "b").status == 422  # before they were bought
    assert trade(client, sold, "c").status == 201
    earlier = trade(client, {**sold, "btc": "0.00000001", "traded_at": "2024-05-01T00:00:00Z"}, "d")
    assert (earlier.status, "0.00000001 BTC" in earlier.json()["detail"]) == (422, True)  # the later sale needs them
    assert (rows(on_both, treasury_trades), len(kinds(on_both))) == (2, 2)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"btc": 0}, "btc"),
        ({"btc": -1}, "btc"),
        ({"btc": "NaN"}, "btc"),
        ({"btc": "sNaN"}, "btc"),
        ({"btc": "-Infinity"}, "btc"),
        ({"btc": "0.000000001"}, "btc"),
        ({"btc": 21_000_001}, "btc"),
        ({"usd": -0.01}, "usd"),
        ({"usd": "1e30"}, "usd"),
        ({"usd": False}, "usd"),
        ({"usd": None}, "usd"),
        ({"side": "steal"}, "side"),
        ({"traded_at": "2024-03-01T12:00:00"}, "traded_at"),
        ({"traded_at": "yesterday"}, "traded_at"),
        ({"traded_at": "9999-12-31T23:59:59Z"}, "traded_at"),
        ({"traded_at": "0001-01-01T00:00:00+14:00"}, "traded_at"),
        ({"price": 1}, "price"),
    ],
)
def test_bad_trades_are_named_and_change_nothing(headwater: Running, change: dict[str, Any], field: str) -> None:
    answer = trade(headwater.program(), {**BOUGHT, **change}, "key")
    assert (answer.status, field in answer.json()["detail"]) == (422, True), answer.text
    assert (rows(headwater, treasury_trades), kinds(headwater)) == (0, [])


def test_a_trade_of_the_next_second_is_in_the_future(headwater: Running) -> None:
    later = iso(headwater.parts.now() + timedelta(seconds=30))
    answer = trade(headwater.program(), {**BOUGHT, "traded_at": later}, "key")
    assert (answer.status, "future" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize("key", ["", " ", "x" * 201])
def test_a_trade_needs_a_key_of_its_own(headwater: Running, key: str) -> None:
    answer = trade(headwater.program(), BOUGHT, key)
    assert (answer.status, "Idempotency-Key" in answer.json()["detail"]) == (422, True)
    assert headwater.program().post("/api/treasury/trade", BOUGHT).status == 422
    assert rows(headwater, treasury_trades) == 0


@pytest.mark.parametrize(
    ("method", "realised"), [("fifo", "4000"), ("lifo", "2000"), ("hifo", "1000"), ("average", "2333.33333333")]
)
def test_each_trade_says_what_it_made_by_the_method_that_is_asked_for(
    program: Client, method: str, realised: str
) -> None:
    for number, usd in enumerate((1000, 4000, 3000)):
        body = {"side": "buy", "btc": 1, "usd": usd, "traded_at": f"2024-01-0{number + 1}T00:00:00Z"}
        trade(program, body, f"buy {number}")
    trade(program, {"side": "sell", "btc": 1, "usd": 5000, "traded_at": "2024-02-01T00:00:00Z"}, "sell")
    pages = []
    cursor = ""
    while cursor is not None:
        page = program.get(f"/api/treasury/trades?method={method}&limit=3{cursor and f'&cursor={cursor}'}").json()
        pages.append(page["items"])
        cursor = page["next_cursor"]
    assert [len(page) for page in pages] == [3, 1]
    sale = pages[0][0]
    assert (sale["trade"]["side"], sale["realised_usd"], sale["btc_after"]) == ("sell", realised, "2")
    assert pages[1][0] == {**pages[1][0], "realised_usd": None, "btc_after": "1", "cost_after_usd": "1000"}


def test_a_viewer_sees_machines_and_trades_and_enters_none(headwater: Running) -> None:
    viewer = headwater.parts.db.write_now(lambda conn: another_tenant(conn, "viewer", "viewer"))
    token = headwater.parts.db.write_now(tokens.issue, viewer, "api", "test", headwater.parts.now())
    client = Client(headwater.port, {"Authorization": f"Bearer {token}"})
    for path in ("/api/miners", "/api/miner-models", "/api/treasury/trades"):
        assert client.get(path).status == 200
    assert client.post("/api/miners", FLEET).json()["code"] == "insufficient_scope"
    assert trade(client, BOUGHT, "key").json()["code"] == "insufficient_scope"
