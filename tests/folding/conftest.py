from __future__ import annotations

from web.conftest import browser, opened

__all__ = ["browser", "opened"]
