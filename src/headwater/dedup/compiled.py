"""Compiled functions where numba is installed. Where it is not, the same functions run as they stand, only slowly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from headwater.dedup.machine_code import folder

Function = TypeVar("Function", bound=Callable[..., Any])

try:
    import numba
except ImportError:  # pragma: no cover
    IS_COMPILED = False

    def compiled(function: Function) -> Function:
        return function

else:
    IS_COMPILED = True
    numba.config.CACHE_DIR = str(folder())  # type: ignore[attr-defined]

    def compiled(function: Function) -> Function:
        """The function in machine code, kept on disk between processes. Other threads run while it does."""
        try:
            return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
        except RuntimeError:
            # There is no folder that numba may write to: each process compiles for itself.
            return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
