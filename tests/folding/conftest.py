from __future__ import annotations

import pytest

from web.conftest import browser, opened

__all__ = ["browser", "opened"]


@pytest.fixture(scope="session", autouse=True)
def _compiled(compiled: None) -> None: ...
