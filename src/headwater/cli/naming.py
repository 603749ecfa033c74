"""How a person names a source on the command line (its address, a former one, or its id), and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from headwater import urls
from headwater.errors import BadInput, NotFound
from headwater.follow.add import kind_and_address
from headwater.model import Reader
from headwater.store import sources
from headwater.wire import Parts


def settings(given: Sequence[str] | None) -> dict[str, Any]:
    """The settings of a source as a person types them, `name=value` each; a value may be JSON."""
    found: dict[str, Any] = {}
    for pair in given or ():
        name, mark, value = pair.partition("=")
        if not mark or not name.strip():
            raise BadInput(f"{pair!r} is not a setting: write NAME=VALUE.")
        try:
            found[name.strip()] = orjson.loads(value)
        except orjson.JSONDecodeError:
            found[name.strip()] = value
    return found


def source_id(parts: Parts, owner: Reader, name: str) -> int:
    address = name if name.isdigit() else kind_and_address(name)[1]
    wanted, _ = urls.without_credential(address)
    found = parts.db.read_now(sources.find, owner, wanted)
    if found is None:
        raise NotFound(f"You do not follow {name}. `headwater sources` lists what you follow.")
    return found
