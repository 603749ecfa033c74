"""The forecast through the command line, on a made-up chain and market."""

from __future__ import annotations

import json
import os
import random
import subprocess
from datetime import date, timedelta
from itertools import pairwise
from math import exp
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.fleet.chain import current_progress, finished_epochs
from headwater.fleet.forecast import forecast, price_ranges
from headwater.model import MarketDay
from headwater.sim.market import mined
from support import forked

HEADER = "date,price_usd,difficulty,height_eod,blocks,fees_btc"
START = date(2018, 1, 1)


def made_up_days(count: int, seed: int = 1, growth: float = 0.03) -> list[MarketDay]:
    """A chain whose hash rate grows steadily, with the retargets that follow, and a price that wanders."""
    return [MarketDay(*one) for one in mined(START, count, seed, growth=growth)]


def written(days: list[MarketDay], path: Path) -> Path:
    lines = [f"{d.day},{d.price_usd},{d.difficulty},{d.height},{d.blocks},{d.fees_btc}" for d in days]
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return forked.run("-m", "headwater", "forecast", *map(str, words), env=os.environ)


def test_the_forecast_of_a_file_is_as_today_with_a_range(tmp_path: Path) -> None:
    days = made_up_days(400)

    answer = run("show", written(days, tmp_path / "daily.csv"), "--days", 20, "--json")

    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [row["day"] for row in rows] == [str(days[-1].day + timedelta(days=ahead)) for ahead in range(1, 21)]
    assert {row["price_usd"] for row in rows} == {days[-1].price_usd}
    widths = [row["price_high"] / row["price_low"] for row in rows]
    assert widths[0] < widths[6] < widths[19]
    assert all(row["price_low"] < row["price_usd"] < row["price_high"] for row in rows)
    assert rows[0]["difficulty"] == days[-1].difficulty
    assert len({row["difficulty"] for row in rows}) > 1  # an epoch ends within twenty days
    assert all(0.6 < row["confidence"] <= 1 for row in rows)


def test_the_evaluation_says_what_was_reached(tmp_path: Path) -> None:
    file = written(made_up_days(1200), tmp_path / "daily.csv")

    answer = run("evaluate", file, "--json")

    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [row.get("days_ahead") for row in rows[:3]] == [1, 7, 30]
    assert [row.get("share") for row in rows[3:]] == [0.1, 0.25, 0.5, 0.9]
    assert answer.returncode == (0 if all(row["reached"] for row in rows) else 1)
    assert rows[0]["origins"] > 700
    assert 0.77 <= rows[0]["coverage"] <= 0.83
    assert rows[3]["ratio"] < 0.8  # a tenth of an epoch says little, and the growth of late says more


def test_real_years_reach_the_goals(measuring_data: Path) -> None:
    answer = run("evaluate", measuring_data / "mining" / "btc_daily_clean.csv", "--since", "2020-01-01")

    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "missed" not in answer.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "The first line has to name the columns"),
        ("date,price_usd\n2020-01-01,1\n", "It lacks difficulty, height_eod, blocks, fees_btc"),
        (f"{HEADER}\n2020-13-01,1,1,1,1,1\n", "Line 2 cannot be read: '2020-13-01' is not a date"),
        (f"{HEADER}\n2020-01-01,-1,1,1,1,1\n", "Line 2 cannot be read: price_usd is '-1'"),
        (f"{HEADER}\n2020-01-01,nan,1,1,1,1\n", "Line 2 cannot be read: price_usd is 'nan'"),
        (f"{HEADER}\n2999-01-01,1,1,1,1,1\n", "Line 2 cannot be read: 2999-01-01 is in the future"),
        (f"{HEADER}\n2020-01-01,0,1,1,1,1\n", "Line 2 cannot be read: price_usd is 0"),
        (f"{HEADER}\n2020-01-01,1,1\n", "Line 2 cannot be read"),
        (f"{HEADER}\n2020-01-01,1,1,1,1,1\n2020-01-03,1,1,1,1,1\n", "2020-01-03 does not follow 2020-01-01"),
        (f"{HEADER}\n2020-01-01,1,1,9,1,1\n2020-01-02,1,1,8,1,1\n", "the height falls from 9 to 8"),
        (f"{HEADER}\n2020-01-01,1,1,1,1,1\n", "At least 60 days need a price"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(text)

    answer = run("show", tmp_path / "bad.csv")

    assert answer.returncode == 2
    assert says in answer.stderr
    assert answer.stdout == ""


def test_a_file_that_is_not_text_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00")

    assert "not UTF-8" in run("show", tmp_path / "bad.csv").stderr
    assert "cannot be read: No such file" in run("evaluate", tmp_path / "none.csv").stderr


def test_epochs_are_read_off_daily_heights() -> None:
    days = made_up_days(200, growth=0.04)

    epochs = finished_epochs(days)

    assert len(epochs) >= 10
    assert [epoch.number for epoch in epochs] == list(range(epochs[0].number, epochs[-1].number + 1))
    for earlier, later in pairwise(epochs[1:]):
        assert later.began == earlier.ended
        assert earlier.change == pytest.approx(14 / (earlier.ended - earlier.began) - 1, abs=0.02)
    progress = current_progress(days)
    assert progress.blocks == days[-1].height % 2016


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.sampled_from([1, 7, 30]))
def test_four_of_five_ranges_hold_whatever_the_price_does(seed: int, ahead: int) -> None:
    chance = random.Random(seed)
    price, prices = 100.0, []
    for number in range(3000):
        wild = 0.01 if (number // 300) % 2 else 0.06
        price *= exp(chance.gauss(0.002, wild) * chance.choice((0.5, 1, 2)))
        prices.append(price)

    held = price_ranges(prices, ahead).held

    assert 0.72 <= sum(held) / len(held) <= 0.88


@given(st.integers(61, 200), st.integers(0, 100))
@settings(max_examples=5)
def test_a_range_depends_on_the_past_alone(known: int, seed: int) -> None:
    prices = [day.price_usd for day in made_up_days(260, seed) if day.price_usd]

    assert price_ranges(prices[:known], 7).halves == price_ranges(prices, 7).halves[:known]


def test_too_little_is_known_for_a_forecast() -> None:
    assert forecast(made_up_days(59)) == []
