"""The fleet of the simulated operator: forty machines at three sites, their readings, and trades. A seed decides it.

Two machines need a look: one has gone silent, and one is under its rate.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from math import sin
from typing import Literal, NamedTuple

EVERY = timedelta(minutes=10)
SILENT, LOW = 7, 23  # places in the list of machines
SILENT_FOR = timedelta(hours=2)


class SimMachine(NamedTuple):
    name: str
    model: str
    site: str
    pool: str
    actual_hashrate_th: float
    actual_power_w: float
    electricity_usd_per_kwh: str
    purchase_usd: str


class SimTrade(NamedTuple):
    side: Literal["buy", "mine", "sell"]
    btc: str
    usd: str
    days_ago: int


class SimReading(NamedTuple):
    """`place` is that of the machine in the list of machines."""

    place: int
    at: datetime
    hashrate_th: float
    power_w: float
    temperature_c: float


_KINDS = (
    ("S21 Pro", "Antminer S21 Pro (234T)", "North hall", 234.0, 3510.0, "0.052", "4100", 14),
    ("M60S", "Whatsminer M60S (186T)", "North hall", 186.0, 3441.0, "0.052", "2600", 8),
    ("S19 XP", "Antminer S19 XP (140T)", "River site", 140.0, 3010.0, "0.061", "1500", 12),
    ("S19j Pro", "Antminer S19j Pro (104T)", "Old mill", 104.0, 3068.0, "0.074", "700", 6),
)
MACHINES = tuple(
    SimMachine(f"{short} {number:02}", model, site, "Harbour Pool", hashrate, power, price, cost)
    for short, model, site, hashrate, power, price, cost, count in _KINDS
    for number in range(1, count + 1)
)
TRADES = (
    SimTrade("buy", "0.75", "64500", 210),
    SimTrade("mine", "0.1432", "12450", 180),
    SimTrade("mine", "0.1518", "13910", 150),
    SimTrade("buy", "0.5", "47250", 120),
    SimTrade("mine", "0.1491", "14120", 90),
    SimTrade("sell", "0.35", "34300", 60),
    SimTrade("mine", "0.1467", "13780", 30),
)


def readings_at(at: datetime, begins: datetime, seed: int = 1) -> Iterator[SimReading]:
    """Returns what the machines say at a time. `begins` is when the simulation began."""
    chance = random.Random(f"{seed} {at.isoformat()}")
    warmth = 4 * sin(at.timestamp() / 86_400 * 6.283)
    for place, one in enumerate(MACHINES):
        if place == SILENT and at > begins - SILENT_FOR:
            continue
        share = (0.62 if place == LOW else 1.0) * chance.gauss(1.0, 0.012)
        heat = 62 + warmth + chance.gauss(0, 1.5)
        rate, power = one.actual_hashrate_th * share, one.actual_power_w * (0.4 + 0.6 * share)
        yield SimReading(place, at, round(rate, 2), round(power, 1), round(heat, 1))
