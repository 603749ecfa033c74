"""kill -9 at any moment: no trade twice, none lost, and the portfolio equals a calculation from nothing (E8, H79)."""

from __future__ import annotations

from decimal import Decimal

from sqlalchemy import func, select

from fleet.changing import CHANGE_UNTIL_KILLED, CHANGES, MACHINES
from fleet.trading import TRADE_UNTIL_KILLED, TRADES, trade_of
from headwater.app.fleet import miners, portfolio
from headwater.app.fleet.miners import NewMiner
from headwater.app.instance import owner
from headwater.fleet.inventory import Trade, settle
from headwater.store.fleet import portfolios, treasury
from headwater.store.tables import event_outbox
from headwater.wire import Parts
from support.processes import kill, killed_after, start

KILLED_AFTER = (0, 7, 21, 22, 40)
ANSWERS_BEFORE_KILL = (1, 30, 77)


def test_killed_again_and_again_every_trade_counts_once(parts: Parts, environ: dict[str, str]) -> None:
    reader = owner(parts.db)
    mine = NewMiner(model="Antminer T21", electricity_usd_per_kwh=Decimal("0.05"))
    parts.db.write_now(miners.add, reader, mine, parts.now())
    for last in (*KILLED_AFTER, None):
        line = "current" if last is None else str(last)
        killed_after(environ, TRADE_UNTIL_KILLED, "trading", line, ends=last is None)
    trades = parts.db.read_now(treasury.every, reader)
    wanted = [trade_of(number) for number in range(TRADES)]
    assert [(one.side, one.btc, one.usd) for one in trades] == [(one.side, one.btc, one.usd) for one in wanted]
    count = select(func.count()).where(event_outbox.c.kind == "treasury.traded")
    assert parts.db.read_now(lambda conn: conn.execute(count).scalar_one()) == TRADES
    naive = settle([Trade(one.side, one.btc, one.usd, one.traded_at or parts.now()) for one in wanted], "average")
    figures = parts.db.read_now(portfolios.figures, reader)
    assert figures == parts.db.read_now(portfolio.calculate, reader).saved.figures
    assert figures is not None
    assert (Decimal(figures["btc_inventory"]), figures["machines"]["quantity"]) == (naive.btc, TRADES + 1)


def test_killed_again_and_again_no_change_that_was_answered_is_lost_nor_half_done(
    parts: Parts, environ: dict[str, str]
) -> None:
    reader = owner(parts.db)
    mine = NewMiner(model="Antminer T21", electricity_usd_per_kwh=Decimal("0.05"))
    ids = [parts.db.write_now(miners.add, reader, mine, parts.now()).id for _ in range(MACHINES)]
    for number in (*ANSWERS_BEFORE_KILL, MACHINES * CHANGES):
        answered: dict[int, int] = {}
        process = start(environ, CHANGE_UNTIL_KILLED, says="changing")
        assert process.stdout is not None
        for _, line in zip(range(number), process.stdout, strict=False):
            miner_id, quantity = map(int, line.split())
            answered[miner_id] = quantity
        kill(process)
        for miner_id in ids:
            now = parts.db.read_now(miners.find, reader, miner_id)
            assert now.quantity >= answered.get(miner_id, 1)
            once = event_outbox.c.idempotency_key.like(f"%:{miner_id}:%")
            count = select(func.count()).where(event_outbox.c.kind == "miner.changed", once)
            events = parts.db.read_now(lambda conn, count=count: conn.execute(count).scalar_one())  # type: ignore[misc]
            assert now.quantity == now.revision == events + 1
        # Whoever failed has added nothing.
        assert [one.id for one in parts.db.read_now(miners.page, reader, after=None, limit=100)] == ids
    assert {parts.db.read_now(miners.find, reader, miner_id).quantity for miner_id in ids} == {CHANGES}
