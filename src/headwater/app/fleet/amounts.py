"""Exact numbers as they come in and go out: decimals within limits, never NaN, and text in JSON."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from headwater.text import printable

PLACES = 8
_STEP = Decimal(1).scaleb(-PLACES)


def _no_flag(given: Any) -> Any:
    if isinstance(given, bool):
        raise ValueError("Input should be a number")
    return given


def _words(given: str) -> str:
    return " ".join(printable(given).split())


def _number(above: int | None, least: int | None, most: int) -> dict[str, Any]:
    bound = {"minimum": least} if above is None else {"exclusiveMinimum": above}
    return {"type": "number", **bound, "maximum": most, "multipleOf": float(_STEP)}


def _written(above: int | None, most: int) -> str:
    """Returns the pattern of a number that is written exactly, of at most as many digits as the largest has."""
    digits = len(str(most)) - 1
    if above is None:
        return rf"^[0-9]{{1,{digits}}}(\.[0-9]{{1,{PLACES}}})?$"
    return rf"^([1-9][0-9]{{0,{digits - 1}}}(\.[0-9]{{1,{PLACES}}})?|0\.[0-9]{{0,{PLACES - 1}}}[1-9])$"


def amount(*, above: int | None = None, least: int | None = 0, most: int) -> Any:
    """Returns the type of a number that a person gives: a JSON number or, to be exact, text such as "0.07"."""
    return Annotated[
        Decimal,
        BeforeValidator(_no_flag),
        Field(gt=above, ge=None if above is not None else least, le=most, decimal_places=PLACES),
        WithJsonSchema({"anyOf": [_number(above, least, most), {"type": "string", "pattern": _written(above, most)}]}),
    ]


Words = Annotated[str, Field(max_length=200), AfterValidator(_words)]
Hashrate = amount(above=0, most=1_000_000)
Power = amount(most=1_000_000)
PowerPrice = amount(most=1_000)
Usd = amount(most=10**13)
Btc = amount(above=0, most=21_000_000)


def plain(value: Decimal | None) -> str | None:
    """Returns a decimal as JSON has it: at most eight places, no exponent, no zeros at the end."""
    if value is None:
        return None
    text = format(value.quantize(_STEP, ROUND_HALF_EVEN), "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"
