"""How things look as JSON, in the HTTP API and in `--json` on the command line. Each shape is declared once, beside its
use cases: a TypedDict whose fields say what they are called, what they mean and where they come from.

    class VersionJson(TypedDict):
        version: Annotated[int, Example(1, "1 for the first text, one more for each edit")]
        seen_at: Annotated[Time, Example("2026-01-07T09:30:01Z", of="valid_from")]

`shaped` makes the object from a row that has the attributes, `example` makes the one that the reference shows, and
FastAPI makes the OpenAPI schema. So a field is declared in one place.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema
from typing_extensions import TypedDict, is_typeddict

from headwater.errors import BadInput

T = TypeVar("T")
Shape = TypeVar("Shape", bound=BaseModel)
_DATE_TIME = Field(json_schema_extra={"format": "date-time"})
Time = Annotated[str, _DATE_TIME]
_NOTHING = object()
_NONE: frozenset[str] = frozenset()
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_MODULES = """account crawling groups health instance log market people posts refresh sources stories tellings webhooks
    fleet.miners fleet.treasury fleet.portfolio fleet.telemetry"""


class Example:
    """An example of a field, and what the field means. `of` is the attribute, or the function, that gives its value."""

    def __init__(self, value: Any = _NOTHING, meaning: str = "", *, of: str | Callable[[Any], Any] = "") -> None:
        self.value, self.meaning, self.of = value, meaning, of

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        if self.meaning:
            schema["description"] = self.meaning
        return schema


class PageJson(TypedDict, Generic[T]):
    """One page of a list. `next_cursor` asks for the next one; null: this was the last."""

    items: list[T]
    next_cursor: Annotated[str | None, Field(examples=["AAZIyr8jOAAAAAAAAAASZw"])]


def iso(moment: datetime) -> str:
    if moment.tzinfo is UTC:
        return f"{moment.replace(tzinfo=None).isoformat()}Z"  # in half the time: nobody asks UTC for its offset
    return moment.isoformat().replace("+00:00", "Z")


def iso_or_none(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None


def csv_lines(rows: Iterable[Iterable[object]]) -> bytes:
    """Writes rows as CSV (RFC 4180). Spreadsheets take a cell that begins with = + - @ for a formula, which can send
    what is beside it elsewhere. An apostrophe before it makes them show it as text."""
    out = io.StringIO()
    csv.writer(out).writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue().encode()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def shaped(shape: type[T], row: object, **more: Any) -> T:
    """Makes the object of this shape from the attributes of a row. `more` are values that the row does not have."""
    if not more:
        return _maker(shape, _NONE)(row)  # type: ignore[arg-type, no-any-return]
    found: T = _maker(shape, frozenset(more))(row)  # type: ignore[arg-type]
    found.update(more)  # type: ignore[attr-defined]
    return found


def checked(shape: type[Shape], given: Mapping[str, Any], refusal: type[BadInput] = BadInput) -> Shape:
    """Reads what somebody gave. Raises the refusal, which names the first field that is wrong."""
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(place) for place in first["loc"])
        raise refusal(f"{field}: {first['msg']}.", field=field) from None


def example(shape: type) -> dict[str, Any]:
    """Makes the object of this shape that the reference shows."""
    return {name: _example_of(hint) for name, hint in _hints(shape).items()}


def examples() -> dict[str, dict[str, Any]]:
    """Returns an example of every shape of the API, by its name."""
    modules = [import_module(f"headwater.app.{name}") for name in _MODULES.split()]  # they import this module
    return {
        found.__name__: example(found)
        for module in modules
        for found in vars(module).values()
        if is_typeddict(found) and found.__module__ == module.__name__
    }


@cache
def _maker(shape: Any, given: frozenset[str]) -> Callable[[Any], Any]:
    hints = _hints(shape)
    blank = dict.fromkeys(hints)
    plain: dict[str, str] = {}
    computed: list[tuple[str, Callable[[Any], Any]]] = []
    converted: list[tuple[str, Callable[[Any], Any]]] = []
    for name, hint in hints.items():
        of = _declared(hint).of or name
        if name in given:
            continue
        if callable(of):
            computed.append((name, of))
        else:
            plain[name] = of
        if convert := _conversion(hint):
            converted.append((name, convert))
    names, values = tuple(plain), _getter(tuple(plain.values()))

    def make(row: Any) -> dict[str, Any]:
        found = blank.copy()  # which keeps the order of the fields
        found.update(zip(names, values(row), strict=True))
        for name, compute in computed:
            found[name] = compute(row)
        for name, convert in converted:
            found[name] = convert(found[name])
        return found

    return make


def _getter(attributes: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(attributes) > 1:
        return attrgetter(*attributes)
    return lambda row: tuple(attrgetter(one)(row) for one in attributes)


def _conversion(hint: Any) -> Callable[[Any], Any] | None:
    """Returns what makes a value JSON: times become text, rows become objects. None: it is JSON already."""
    for one in _alternatives(hint):
        if _DATE_TIME in getattr(one, "__metadata__", ()):
            return iso_or_none
        inner = _bare(one)
        if is_typeddict(inner):
            make = _maker(inner, _NONE)
            return lambda row, make=make: None if row is None else make(row)  # type: ignore[misc]
        if get_origin(inner) is list and is_typeddict(of := _bare(get_args(inner)[0])):
            make = _maker(of, _NONE)
            return lambda rows, make=make: [make(row) for row in rows]  # type: ignore[misc]
        if get_origin(inner) is dict:
            return lambda found: None if found is None else dict(found)
    return None


def _example_of(hint: Any) -> Any:
    declared = _declared(hint)
    if declared.value is not _NOTHING:
        return declared.value
    inner = _bare(hint)
    if is_typeddict(inner):
        return example(inner)
    if get_origin(inner) is list:
        return [example(_bare(get_args(inner)[0]))]
    raise TypeError(f"{hint} has no example")


def _hints(shape: type) -> Mapping[str, Any]:
    return get_type_hints(shape, include_extras=True)


def _declared(hint: Any) -> Example:
    return next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Example)), Example())


def _alternatives(hint: Any) -> list[Any]:
    """Returns the types that a value may have, with their annotations."""
    bare = _bare(hint)
    both = list(get_args(bare)) if get_origin(bare) in (Union, UnionType) else [bare]
    return [hint, *both]


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint
