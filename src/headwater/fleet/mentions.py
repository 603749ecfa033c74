"""Which machines, makers, pools and coins a text names. Pure.

A name is found as a whole word, in any case, and in Chinese. What is too short or too common to stand alone, such as S9
or Foundry, counts only if something nearby says that it is meant: the maker or the series of the machine, or a word of
mining. Of two names that begin at the same place the longer one is meant: a text about the S19 Pro does not name the
S19.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

NEARBY = 200  # characters on either side
SHORTEST_POOL = 3
LONGEST_POOL = 60
_MINING = "mining"  # the evidence that a common word needs
_HAN = "\u3400-\u9fff"
_OTHER_SCRIPTS = f"{_HAN}\u3040-\u30ff\uac00-\ud7af"  # in these, words are not set apart from Latin ones
_WORD = re.compile(rf"[^\W_{_OTHER_SCRIPTS}]+\+*")
_CODE = re.compile(r"[a-z]*\d+")
_BRACKETS = re.compile(r"\s*\([^)]*\)")
_VARIANTS = frozenset({"pro", "pro+", "plus", "xp", "xp+", "hyd", "hydro", "se", "max", "imm", "immersion", "mini"})
_SERIES_WORDS = (["series"], ["family"])
_SERIES_HAN = "系列"
_MINING_WORDS = frozenset(
    [
        *("bitcoin", "btc", "miner", "miners", "mining", "mined", "hashrate", "hashpower", "hashprice"),
        *("asic", "asics", "pool", "pools", "th", "ph", "eh"),
    ]
)
_MINING_HAN = ("矿", "礦", "算力", "比特币", "比特幣")


class Subject(NamedTuple):
    """Something that a person may have: a `model` of machines, their `maker`, a `pool` or a `coin`."""

    kind: str
    name: str

    @property
    def id(self) -> int:
        """A number that stands for it, and says nothing about it to those who do not have it."""
        key = f"{self.kind}:{' '.join(self.name.casefold().split())}".encode()
        return int.from_bytes(blake2b(key, digest_size=8).digest(), signed=True)


class Mention(NamedTuple):
    """What a text names, and by which word."""

    subject: Subject
    word: str


class _Known(NamedTuple):
    """A name of our own list. `common` words name it only where mining is talked about."""

    name: str
    words: tuple[str, ...]
    common: tuple[str, ...] = ()
    han: tuple[str, ...] = ()


class _Alias(NamedTuple):
    words: tuple[str, ...]
    subjects: tuple[Subject, ...]
    needs: str = ""  # of which the text has to speak nearby: a maker, or mining
    series: tuple[Subject, ...] = ()  # all machines of its series; another word after it may make it another machine


class _Found(NamedTuple):
    subjects: tuple[Subject, ...]
    needs: str
    start: int
    end: int


COIN = Subject("coin", "Bitcoin")
_NOTHING: tuple[Subject, ...] = ()
_MAKERS = (
    _Known("Bitmain", ("bitmain", "antminer", "antminers"), han=("比特大陆", "比特大陸", "蚂蚁矿机", "螞蟻礦機")),
    _Known("MicroBT", ("microbt", "whatsminer", "whatsminers"), han=("比特微", "神马矿机", "神馬礦機")),
    _Known("Canaan", ("avalonminer", "canaan creative"), ("canaan", "avalon"), ("嘉楠", "阿瓦隆矿机")),
    _Known("Bitdeer", ("bitdeer", "sealminer", "sealminers"), han=("比特小鹿",)),
    _Known("Ebang", ("ebang",), ("ebit",), ("亿邦", "億邦")),
    _Known("Innosilicon", ("innosilicon",), han=("芯动科技", "芯動科技")),
    _Known("Auradine", ("auradine", "teraflux")),
)
_NICKNAMES = {"Bitmain": ("蚂蚁", "螞蟻"), "MicroBT": ("神马", "神馬"), "Canaan": ("阿瓦隆",)}  # evidence, no more
_POOLS = (
    _Known("AntPool", ("antpool", "ant pool"), han=("蚂蚁矿池", "螞蟻礦池")),
    _Known("Binance Pool", ("binance pool",), han=("币安矿池", "幣安礦池")),
    _Known("Braiins Pool", ("braiins", "slush pool", "slushpool")),
    _Known("BTC.com", ("btc com",)),
    _Known("CKPool", ("ckpool", "solo ckpool")),
    _Known("EMCD", ("emcd",)),
    _Known("F2Pool", ("f2pool",), han=("鱼池", "魚池")),
    _Known("Foundry USA", ("foundry usa", "foundry digital", "foundryusapool"), ("foundry",)),
    _Known("Luxor", ("luxor pool", "luxor technology", "luxor mining"), ("luxor",)),
    _Known("MARA Pool", ("mara pool", "marapool")),
    _Known("NiceHash", ("nicehash",)),
    _Known("OCEAN", ("ocean pool", "ocean xyz", "ocean mining"), ("ocean",)),
    _Known("Poolin", ("poolin",), han=("币印", "幣印")),
    _Known("SBI Crypto", ("sbi crypto",)),
    _Known("SpiderPool", ("spiderpool", "spider pool")),
    _Known("ViaBTC", ("viabtc",), han=("微比特",)),
)
_COIN = _Known(COIN.name, ("bitcoin", "bitcoins", "btc", "xbt"), han=("比特币", "比特幣"))
# Coins and firms whose names begin like that of the coin.
_OTHER_COINS = ("bitcoin cash", "bitcoin sv", "bitcoin gold", "bitcoin diamond")
_OTHER_COINS_HAN = ("比特币现金", "比特幣現金", "比特币黄金", "比特幣黃金")


class Vocabulary:
    """Names that are looked for, found by their first word."""

    def __init__(self, aliases: Iterable[_Alias], han: dict[str, tuple[Subject, ...]]) -> None:
        self._by_word: dict[str, list[_Alias]] = defaultdict(list)
        for one in aliases:
            self._by_word[one.words[0]].append(one)
        for found in self._by_word.values():
            found.sort(key=lambda one: (-len(one.words), -sum(each.kind == "model" for each in one.subjects)))
        self._han = han
        words = sorted({*han, *_MINING_HAN, *(word for names in _NICKNAMES.values() for word in names)}, key=len)
        self._han_words = re.compile("|".join(map(re.escape, reversed(words))))
        self._nicknames = {word: maker for maker, names in _NICKNAMES.items() for word in names}

    def mentions(self, text: str) -> list[Mention]:
        """Returns everything that a text names, each once, by the first word that names it."""
        text = unicodedata.normalize("NFKC", text)
        found, evidence = self._latin(text)
        self._chinese(text, found, evidence)
        named: dict[Subject, Mention] = {}
        for one in sorted(found, key=lambda one: one.start):
            if not one.needs or _is_near(evidence[one.needs], one):
                for subject in one.subjects:
                    named.setdefault(subject, Mention(subject, text[one.start : one.end]))
        return list(named.values())

    def _latin(self, text: str) -> tuple[list[_Found], defaultdict[str, list[int]]]:
        places = [(one.group().lower(), one.start(), one.end()) for one in _WORD.finditer(text)]
        words = [word for word, _, _ in places]
        found, evidence, at = list[_Found](), defaultdict[str, list[int]](list), 0
        while at < len(words):
            word, start, end = places[at]
            if word in _MINING_WORDS:
                evidence[_MINING].append(start)
            alias = self._longest(words, at)
            if alias is None:
                at += 1
                continue
            at += len(alias.words)
            end = places[at - 1][2]
            _note_makers(evidence, alias.subjects, start)
            found.append(_Found(alias.subjects, alias.needs, start, end))
            if alias.series and (text.startswith(_SERIES_HAN, end) or words[at : at + 1] in _SERIES_WORDS):
                found.append(_Found(alias.series, alias.needs, start, end))
        return found, evidence

    def _longest(self, words: Sequence[str], at: int) -> _Alias | None:
        for alias in self._by_word.get(words[at], ()):
            end = at + len(alias.words)
            if tuple(words[at:end]) == alias.words:
                is_another = alias.series and end < len(words) and words[end] in _VARIANTS
                return alias._replace(subjects=_makers_of(alias)) if is_another else alias
        return None

    def _chinese(self, text: str, found: list[_Found], evidence: defaultdict[str, list[int]]) -> None:
        if text.isascii():
            return
        for one in self._han_words.finditer(text):
            word = one.group()
            if word in _MINING_HAN:
                evidence[_MINING].append(one.start())
            if word in self._nicknames:
                evidence[self._nicknames[word]].append(one.start())
            if word in self._han:
                _note_makers(evidence, self._han[word], one.start())
                found.append(_Found(self._han[word], "", one.start(), one.end()))


def _note_makers(evidence: defaultdict[str, list[int]], subjects: Iterable[Subject], start: int) -> None:
    for subject in subjects:
        if subject.kind == "maker":
            evidence[subject.name].append(start)


def _is_near(places: Sequence[int], one: _Found) -> bool:
    return any(one.start - NEARBY <= place <= one.end + NEARBY for place in places if place != one.start)


def _makers_of(alias: _Alias) -> tuple[Subject, ...]:
    return tuple(one for one in alias.subjects if one.kind == "maker")


def vocabulary(models: Iterable[tuple[str, str]], pools: Iterable[str] = ()) -> Vocabulary:
    """Returns what is looked for: a catalogue of models with their makers, pools by name, and what everybody knows."""
    aliases = [_Alias(tuple(name.split()), _NOTHING) for name in _OTHER_COINS]
    han: dict[str, tuple[Subject, ...]] = dict.fromkeys(_OTHER_COINS_HAN, _NOTHING)
    known = [("maker", one) for one in _MAKERS] + [("pool", one) for one in _POOLS] + [("coin", _COIN)]
    for kind, one in known:
        subjects = (Subject(kind, one.name),)
        aliases += [_Alias(tuple(words.split()), subjects) for words in one.words]
        aliases += [_Alias(tuple(words.split()), subjects, _MINING) for words in one.common]
        han |= dict.fromkeys(one.han, subjects)
    listed = {(model_name(name), maker) for name, maker in models}
    aliases += _of_makers({maker for _, maker in listed} - {one.name for one in _MAKERS})
    aliases += _of_models(listed)
    for pool in pools:
        if pool_named(pool) == Subject("pool", pool):
            aliases.append(_of_pool(pool))
            han |= {} if aliases[-1].words else {pool: (Subject("pool", pool),)}
    return Vocabulary([one for one in aliases if one.words], han)


def model_name(name: str) -> str:
    """Returns the name of a model without its variant: Antminer S19 Pro for Antminer S19 Pro (110T)."""
    return " ".join(_BRACKETS.sub("", name).split())


def pool_named(given: str) -> Subject | None:
    """Returns the pool that a person means, who may have written its name or its address."""
    words = _words(given)
    for one in _POOLS:
        for name in (*one.words, *one.common):
            if _contains(words, name.split()):
                return Subject("pool", one.name)
        if any(name in given for name in one.han):
            return Subject("pool", one.name)
    name = " ".join(given.split())
    if "://" in name or not SHORTEST_POOL <= len(name) <= LONGEST_POOL:
        return None
    return Subject("pool", name)


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(list(words[at : at + len(part)]) == list(part) for at in range(len(words)))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(unicodedata.normalize("NFKC", text))]


def _of_pool(name: str) -> _Alias:
    words = tuple(_words(name))
    return _Alias(words, (Subject("pool", name),), _MINING if len(words) == 1 else "")


def _of_makers(names: Iterable[str]) -> list[_Alias]:
    """Makers of an imported catalogue: nobody knows how common their names are."""
    return [_Alias(tuple(_words(name)), (Subject("maker", name),), _MINING) for name in names if name]


class _Machine(NamedTuple):
    """A model by its parts: Antminer, S19 Pro, and S19, which is its series."""

    subject: Subject
    maker: str
    called: tuple[str, ...]
    code: tuple[str, ...]
    stem: str

    @property
    def before(self) -> set[tuple[str, ...]]:
        """What its code follows: the name of its series, or of its maker."""
        also = {("avalon",)} if self.called == ("avalonminer",) else set()
        return ({self.called, tuple(_words(self.maker))} | also) - {()}

    @property
    def whole(self) -> tuple[Subject, ...]:
        return (self.subject, Subject("maker", self.maker)) if self.maker else (self.subject,)


def _machine(name: str, maker: str) -> _Machine:
    words = _words(name)
    first = next((place for place, word in enumerate(words) if any(map(str.isdigit, word))), len(words))
    stem = _CODE.match(words[first]) if first < len(words) else None
    called, code = tuple(words[:first]), tuple(words[first:])
    return _Machine(Subject("model", name), maker, called, code, stem.group() if stem else "")


def _of_models(listed: Iterable[tuple[str, str]]) -> list[_Alias]:
    machines, series = [_machine(*one) for one in sorted(listed)], defaultdict[tuple[str, str], list[Subject]](list)
    for one in machines:
        series[one.maker, one.stem].append(one.subject)
    return [alias for one in machines for alias in _of_machine(one, tuple(series[one.maker, one.stem]))]


def _of_machine(one: _Machine, series: tuple[Subject, ...]) -> list[_Alias]:
    if not one.code:
        return [_Alias(one.called, one.whole, _MINING if len(one.called) == 1 else "")]
    aliases = []
    for written in _spellings(one.code):
        aliases += [_Alias((*before, *written), one.whole, "", series) for before in one.before]
        short = ("a" + written[0], *written[1:]) if written[0].isdigit() else written  # A1166 Pro is the 1166 Pro
        if one.maker:
            aliases.append(_Alias(short, (one.subject,), one.maker, series))
    if one.maker and one.stem not in (*one.code[:1], "") and not one.stem.isdigit():
        by = (Subject("maker", one.maker),)
        aliases += [_Alias((*before, one.stem), by, "", series) for before in one.before]
        aliases.append(_Alias((one.stem,), _NOTHING, one.maker, series))
    return aliases


def _spellings(code: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Returns how people write the name of a machine: S19 Pro, S19Pro, S19 Pro Plus for Pro+, Hydro for Hyd."""
    found = {code}
    for one in list(found):
        found.add(tuple("hydro" if word == "hyd" else word for word in one))
    for one in list(found):
        if len(one) > 1 and one[-1].endswith("+") and not one[-1].endswith("++"):
            found.add((*one[:-1], one[-1][:-1], "plus"))
    for one in list(found):
        if len(one) > 1:
            found.add(("".join(one),))
    return found
