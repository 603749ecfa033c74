"""Groups posts as other libraries would. Run by the Python that has one: `dedup_groups.py NAME THRESHOLD < texts`.

A text a line, as JSON. Each library is used as its own documentation shows, with leader clustering: a post joins the
first one that it is found to be like. The answer, as JSON: the groups, the seconds of CPU, the peak of memory.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

_TERM = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff]+|[\u3040-\u30ff\u3400-\u9fff]")
_PERMUTATIONS = 64


def terms(text: str) -> list[str]:
    """Returns words, and pairs of Chinese characters."""
    found = _TERM.findall(text.lower())
    pairs = [word + after if word > "\u2fff" and after > "\u2fff" else word for word, after in pairwise(found)]
    return pairs + found[-1:]


def by_datasketch(texts: list[str], threshold: float) -> list[int]:
    from datasketch import MinHash, MinHashLSH  # type: ignore[import-not-found]  # only in the peer's own environment

    def sketched(text: str) -> Any:
        sketch = MinHash(num_perm=_PERMUTATIONS)
        sketch.update_batch([term.encode() for term in terms(text)])
        return sketch

    return _grouped(texts, MinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS), sketched)


def by_rensa(texts: list[str], threshold: float) -> list[int]:
    from rensa import RMinHash, RMinHashLSH  # type: ignore[import-not-found]  # only in the peer's own environment

    def sketched(text: str) -> Any:
        sketch = RMinHash(num_perm=_PERMUTATIONS, seed=1)
        sketch.update(terms(text))
        return sketch

    return _grouped(texts, RMinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS, num_bands=16), sketched)


def _grouped(texts: list[str], index: Any, sketched: Callable[[str], Any]) -> list[int]:
    """Puts each text into the group of the earliest one that the index finds for it."""
    groups: list[int] = []
    for number, text in enumerate(texts):
        sketch = sketched(text)
        found = index.query(sketch)
        if found:
            groups.append(groups[min(found)])
        else:
            index.insert(number, sketch)
            groups.append(number)
    return groups


def by_scikit_learn(texts: list[str], threshold: float) -> list[int]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    matrix = TfidfVectorizer(analyzer=terms).fit_transform(texts)
    groups: list[int] = []
    for start in range(0, len(texts), 500):
        likeness = (matrix[start : start + 500] @ matrix.T).tocsr()
        for row in range(likeness.shape[0]):
            number = start + row
            near = likeness.indices[likeness.indptr[row] : likeness.indptr[row + 1]]
            scores = likeness.data[likeness.indptr[row] : likeness.indptr[row + 1]]
            earlier = near[(scores >= threshold) & (near < number)]
            groups.append(groups[int(earlier.min())] if len(earlier) else number)
    return groups


BY_NAME: dict[str, Callable[[list[str], float], list[int]]] = {
    "datasketch": by_datasketch,
    "rensa": by_rensa,
    "scikit-learn": by_scikit_learn,
}


def main() -> None:
    texts: list[str] = [json.loads(line) for line in sys.stdin]
    started = time.process_time()
    groups = BY_NAME[sys.argv[1]](texts, float(sys.argv[2]))
    answer: dict[str, Any] = {
        "groups": groups,
        "seconds": time.process_time() - started,
        "peak_mb": int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
