"""What Schemathesis may send: integers of 64 bits. Larger ones are refused everywhere, also in fields that no schema
names."""

from __future__ import annotations

from typing import Any

import schemathesis

LARGEST = 2**63 - 1


@schemathesis.hook
def filter_body(context: Any, body: Any) -> bool:
    return fits(body)


def fits(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(fits, value.values()))
    if isinstance(value, list):
        return all(map(fits, value))
    return not isinstance(value, int) or abs(value) <= LARGEST
