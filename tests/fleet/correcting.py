"""An operator who enters trades wrongly and corrects each, until somebody kills the process, and begins again."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from headwater import wire
from headwater.app.fleet import treasury
from headwater.app.fleet.treasury import NewTrade, WantedCorrection
from headwater.app.instance import owner
from headwater.settings import load
from support.posts import NOON

CORRECTED = 8
CORRECT_UNTIL_KILLED = "from fleet.correcting import correct_until_killed; correct_until_killed()"


def correct_until_killed() -> None:
    parts = wire.open_parts(load())
    reader = owner(parts.db)
    print("correcting", flush=True)
    for number in range(CORRECTED):
        wrong = NewTrade(side="buy", btc=Decimal(1), usd=Decimal(9), traded_at=NOON + timedelta(minutes=number))
        trade = parts.db.write_now(treasury.trade, reader, wrong, f"trade {number}", parts.now())
        right = WantedCorrection(trade=NewTrade(side="buy", btc=Decimal(2), usd=Decimal(9)))
        parts.db.write_now(treasury.correct, reader, trade.id, right, f"correction {number}", parts.now())
        print(number, flush=True)
    print("done", flush=True)
