"""How a person names a source on the command line: by its address, a former one, or its id."""

from __future__ import annotations

from headwater import urls
from headwater.crawl.follow import kind_and_address
from headwater.errors import NotFound
from headwater.model import Reader
from headwater.store import sources
from headwater.wire import Parts


def source_id(parts: Parts, owner: Reader, name: str) -> int:
    address = name if name.isdigit() else kind_and_address(name)[1]
    wanted, _ = urls.without_credential(address)
    found = parts.db.read_now(sources.find, owner, wanted)
    if found is None:
        raise NotFound(f"You do not follow {name}. `headwater sources` lists what you follow.")
    return found
