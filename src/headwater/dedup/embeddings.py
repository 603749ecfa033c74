"""Vectors for what texts mean, from a table of word pieces that comes inside a package. Nothing is ever downloaded.

The package is `wordllama` (`pip install headwater[embeddings]`). Only its files are used: its code can reach for the
network, and sets up logging when it is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.errors import BadInput

PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
# The table is made so that its first columns can be used alone. More of them find no more.
DIMENSIONS = 64


class Embeddings:
    """Turns texts into vectors: the mean of the vectors of their word pieces."""

    def __init__(self, table: NDArray[np.float32], tokenizer: Any) -> None:
        self._table = table
        self._tokenizer = tokenizer

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row of length 1 for each text; all zeros for one without pieces."""
        rows = np.zeros((len(texts), self._table.shape[1]), np.float32)
        for row, pieces in zip(
            rows, self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False), strict=True
        ):
            if pieces.ids:
                row[:] = self._table[pieces.ids].mean(axis=0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(lengths > 0, lengths, 1)
        return rows


def load(dimensions: int = DIMENSIONS) -> Embeddings:
    """The embeddings of the installed package."""
    package = find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise BadInput("embeddings: they are not installed; pip install headwater[embeddings]")
    folder = Path(package.submodule_search_locations[0])
    (table,) = import_module("safetensors.numpy").load_file(folder / WEIGHTS).values()
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / TOKENIZER))
    return Embeddings(np.ascontiguousarray(table[:, :dimensions], np.float32), tokenizer)
