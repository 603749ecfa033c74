"""A simulated market and chain: a price that wanders, a hash rate that grows, and the retargets that follow.

A seed decides all of it. The chain is mined block by block, so that heights, epochs and difficulties fit together.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from math import exp
from typing import NamedTuple

from headwater.sim.serving import Answer, Ask, Clock, conditional, request_handler, served

COLUMNS = "date,price_usd,difficulty,height_eod,blocks,fees_btc,hashrate_th"
HISTORY_DAYS = 500
BLOCKS_PER_EPOCH, EPOCH_DAYS, BLOCKS_PER_DAY = 2016, 14, 144
HASHES_PER_DIFFICULTY = 2**32


class SimDay(NamedTuple):
    day: date
    price_usd: float
    difficulty: float
    height: int
    blocks: int
    fees_btc: float
    hashrate_th: float


def mined(first: date, count: int, seed: int = 1, *, growth: float = 0.01) -> list[SimDay]:
    """Returns these days. `growth` is by how much the hash rate grows in an epoch."""
    chance = random.Random(seed)
    price, difficulty, rate = 97_000.0, 128e12, 128e12
    height, epoch_began, now = 936_000, 0.0, 0.0
    days = []
    for number in range(count):
        before = height
        while (now := now + chance.expovariate(BLOCKS_PER_DAY * rate / difficulty)) < number + 1:
            height += 1
            if height % BLOCKS_PER_EPOCH == 0:
                difficulty *= EPOCH_DAYS / (now - epoch_began) if epoch_began else 1.0
                epoch_began = now
        rate *= (1 + growth) ** (1 / EPOCH_DAYS)
        price *= exp(chance.gauss(0, 0.017 if number % 200 < 120 else 0.032))
        fees = (height - before) * chance.uniform(0.02, 0.09)
        hashrate = (height - before) * difficulty * HASHES_PER_DIFFICULTY / 86_400 / 1e12
        days.append(SimDay(first + timedelta(days=number), price, difficulty, height, height - before, fees, hashrate))
    return days


def as_csv(days: list[SimDay]) -> bytes:
    lines = [
        f"{one.day},{one.price_usd:.2f},{one.difficulty:.0f},{one.height},{one.blocks},{one.fees_btc:.4f},"
        f"{one.hashrate_th:.0f}"
        for one in days
    ]
    return "\n".join([COLUMNS, *lines, ""]).encode()


@contextmanager
def serving(clock: Clock, seed: int = 1) -> Iterator[str]:
    """Serves the market up to yesterday at this address."""
    first = clock.now().date() - timedelta(days=HISTORY_DAYS)
    days = mined(first, 2 * HISTORY_DAYS, seed)

    def answer(asked: Ask) -> Answer:
        past = [one for one in days if one.day < clock.now().date()]
        return conditional(Answer(200, as_csv(past), {"Content-Type": "text/csv"}), asked)

    with served(request_handler(answer)) as url:
        yield f"{url}/daily.csv"
