"""Which machines, makers, pools and coins a text names. What only looks like a name is none (F5)."""

from __future__ import annotations

import unicodedata
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.app.fleet.miners import read_models
from headwater.fleet.mentions import Subject, pool_named, vocabulary

CATALOGUE = [
    (one.model_name, one.manufacturer)
    for one in read_models((files("headwater") / "data" / "miner_models.csv").read_bytes())
]
WORDS = vocabulary([*CATALOGUE, ("Fluminer T9", "Fluminer")], ["Blue Creek", "Riverbed", "山泉矿池"])


def named(text: str) -> dict[str, str]:
    """What a text names, and by which word."""
    return {one.subject.name: one.word for one in WORDS.mentions(text)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Bitmain cuts the price", {"Bitmain": "Bitmain"}),
        ("ANTMINER S19 PRO on sale", {"Antminer S19 Pro": "ANTMINER S19 PRO", "Bitmain": "ANTMINER S19 PRO"}),
        ("The S9, by Bitmain", {"Antminer S9": "S9", "Bitmain": "Bitmain"}),
        (
            "S19-Pro and S19jPro from Bitmain",
            {"Antminer S19 Pro": "S19-Pro", "Antminer S19j Pro": "S19jPro", "Bitmain": "Bitmain"},
        ),
        ("Bitmain S19j Pro Plus", {"Antminer S19j Pro+": "Bitmain S19j Pro Plus", "Bitmain": "Bitmain S19j Pro Plus"}),
        ("Antminer S21 Hydro", {"Antminer S21 Hyd": "Antminer S21 Hydro", "Bitmain": "Antminer S21 Hydro"}),
        ("Whatsminer M30S++", {"Whatsminer M30S++": "Whatsminer M30S++", "MicroBT": "Whatsminer M30S++"}),
        ("AvalonMiner 1166 Pro", {"AvalonMiner 1166 Pro": "AvalonMiner 1166 Pro", "Canaan": "AvalonMiner 1166 Pro"}),
        ("比特大陆发布S19 Pro矿机", {"Bitmain": "比特大陆", "Antminer S19 Pro": "S19 Pro"}),
        ("蚂蚁S9关机价", {"Antminer S9": "S9"}),
        ("神马M50S跌价", {"Whatsminer M50S": "M50S"}),
        ("鱼池算力上升", {"F2Pool": "鱼池"}),
        ("山泉矿池停机", {"山泉矿池": "山泉矿池"}),
        ("比特币大涨", {"Bitcoin": "比特币"}),
        ("$BTC/USD at a high", {"Bitcoin": "BTC"}),
        ("Blue Creek pays out", {"Blue Creek": "Blue Creek"}),
        ("The mining pool Riverbed", {"Riverbed": "Riverbed"}),
        ("Foundry has a third of the hashrate", {"Foundry USA": "Foundry"}),
        ("Fluminer ships a new mining rig", {"Fluminer": "Fluminer"}),
    ],
)
def test_a_name_is_found_in_each_way_it_is_written(text: str, found: dict[str, str]) -> None:
    assert named(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "Samsung Galaxy S9 review",  # no maker of machines nearby
        "The A1 motorway and the M50 are closed",
        "Canaan is a town in Connecticut",
        "Foundry workers go on strike",
        "The ocean is rising at Riverbed",
        "Bitcoin Cash and 比特币现金 rise",
        "Antminers19",  # not a word of its own
        "les clés9 de la maison",
        "S9" + " " * 300 + "Bitmai",
        "",
    ],
)
def test_what_only_looks_like_a_name_is_none(text: str) -> None:
    assert named(text) == {}


def test_a_short_name_far_from_its_maker_is_not_believed() -> None:
    assert "Antminer S9" not in named("Bitmain" + " and so on" * 40 + " the Galaxy S9")
    assert "Antminer S9" in named("Bitmain" + " and so on" * 4 + " the S9")


def test_the_longer_name_is_meant() -> None:
    assert "Antminer S19" not in named("Antminer S19 Pro")
    assert "Antminer S19" not in named("Antminer S19 Max"), "a variant that no catalogue has is another machine"
    assert named("Antminer S19 Max") == {"Bitmain": "Antminer S19"}
    assert "Whatsminer M30S" not in named("Whatsminer M30S+")


@pytest.mark.parametrize("text", ["Bitmain's S19 series", "蚂蚁S19系列降价", "the Antminer S19 family"])
def test_a_series_names_each_of_its_machines(text: str) -> None:
    found = {name for name in named(text) if name.startswith("Antminer")}
    assert {"Antminer S19", "Antminer S19 Pro", "Antminer S19j Pro", "Antminer S19 XP"} <= found
    assert "Antminer S21" not in found
    assert {"Whatsminer M30S", "Whatsminer M30S++"} <= set(named("MicroBT ends the M30 series"))


def test_a_pool_is_known_by_its_name_or_its_address() -> None:
    assert pool_named("stratum+tcp://ss.antpool.com:3333") == Subject("pool", "AntPool")
    assert pool_named("luxor") == Subject("pool", "Luxor")
    assert pool_named("蚂蚁矿池") == Subject("pool", "AntPool")
    assert pool_named("Blue  Creek") == Subject("pool", "Blue Creek")
    assert pool_named("stratum+tcp://10.0.0.1:3333") is None
    assert pool_named("") is None


@given(st.text(alphabet=st.sampled_from("SMTs19j +.\n/-BbITCmain矿比特币蚂é\0\u200dİß"), max_size=60))
def test_any_text_is_read_and_each_word_found_stands_in_it(text: str) -> None:
    for one in WORDS.mentions(text):
        assert one.word in unicodedata.normalize("NFKC", text)


@given(st.sampled_from(CATALOGUE), st.sampled_from(["{}", "New: {}!", "“{}”", "矿机{}降价", "({})"]))
def test_every_machine_of_the_catalogue_is_found_by_its_full_name(machine: tuple[str, str], around: str) -> None:
    name = machine[0].partition(" (")[0]
    written = (
        name
        if any(name.startswith(word) for word in ("Ant", "What", "Ava", "Seal", "Tera", "Ebit"))
        else f"{machine[1]} {name}"
    )
    found = named(around.format(written))
    assert {name, machine[1]} <= set(found)
