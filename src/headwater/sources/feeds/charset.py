"""Which charset bytes are in that nobody labelled: the one in which they make the commonest letters of its language."""

from __future__ import annotations

import re

SAMPLE = 100_000

# Per charset: the commonest letters of its language, and what part of the text beyond ASCII they make up at least.
# Decoded with a wrong charset, a text has them by chance only.
_KANA = "のにはをたがでてとしれさあいうるなもからりきこそくまつよすんけねえわみやめだどッンスルトラクリアイータ、。"
_LANGUAGES = (
    ("cp932", _KANA, 0.3),
    ("euc_jp", _KANA, 0.3),
    ("cp949", "이다는을가의에고한를하은지도서기로사라자인정리수대어시부아나그스들해일전만과여", 0.25),
    ("gb18030", "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会，。", 0.15),
    ("big5hkscs", "的一是不了在人有我他這中大來上國個到說們為子和你地出道也時年得就那要下以生會，。", 0.15),
    ("cp1251", "оеаинтсрвл", 0.45),
    ("koi8-r", "оеаинтсрвл", 0.45),
    ("cp866", "оеаинтсрвл", 0.45),
    ("cp1253", "αοιετσνηυρ", 0.45),
    ("cp1255", "יוהלאמרבתש", 0.45),
    ("cp1256", "الينمورتبه", 0.45),
    ("cp874", "านรอกเงมยลท่วาด้ส", 0.45),
)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")


def guessed(body: bytes) -> str:
    """The charset of text that is not UTF-8; Windows-1252 where nothing speaks for another."""
    sample = _start(body)
    if b"\x1b$" in sample:
        return "iso2022_jp"
    runs = _HIGH_RUN.findall(sample)
    # Letters with accents stand alone among others; letters of another script stand together.
    if sum(map(len, runs)) < 2 * len(runs):
        return "cp1252"
    best, best_score = "cp1252", 1.0
    for codec, letters, at_least in _LANGUAGES:
        beyond = _BEYOND_ASCII.findall(sample.decode(codec, "replace"))
        if beyond.count("\ufffd") * 50 > len(beyond):
            continue
        score = sum(map(set(letters).__contains__, beyond)) / max(1, len(beyond)) / at_least
        if score > best_score:
            best, best_score = codec, score
    return best


def _start(body: bytes) -> bytes:
    """The first part of a document, to the end of a line, where no character is cut in two."""
    if len(body) <= SAMPLE:
        return body
    end = body.rfind(b"\n", 0, SAMPLE)
    return body[: end if end > 0 else SAMPLE]
