"""Stands in for the module `cython` where the compiled parts run as Python and Cython is not installed.

Cython itself takes 17 MB, for these two names.
"""

from __future__ import annotations

from contextlib import nullcontext

compiled = False
nogil = nullcontext()
