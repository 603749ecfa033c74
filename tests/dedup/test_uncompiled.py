"""The compiled parts run as Python too, and then decide the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headwater
from headwater.dedup import repeat_index

SOURCES = Path(headwater.__file__).parent
BENCH = Path(__file__).resolve().parents[2] / "bench"
# Several windows long, so that what was seen fades and terms are forgotten; with articles, labels and told-apart posts.
DECIDE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from peers.dedup_posts import posts
from headwater.dedup import repeat_index
from headwater.dedup.repeats import Posting
from headwater.dedup.stories import StoryIndex

made = list(posts(1500, seed=3))
articles = [" ".join(text for text, _ in made[at : at + 6]) for at in range(0, 300, 6)]
posted = [Posting(at, text, "", (when - 1.7e9) * 4) for at, (text, when) in enumerate(made)]
posted += [Posting(5000 + at, "", text + " more" * (at % 3), 1e6) for at, text in enumerate(articles + articles)]
answers = [repeat_index.__file__, repeat_index.IS_COMPILED]
for index in (repeat_index.RepeatIndex(), StoryIndex()):
    for start in range(0, len(posted), 400):
        answers += index.add_many(posted[start : start + 400])
    for post in posted[:1500:50]:
        index.forget(post.id if isinstance(index, repeat_index.RepeatIndex) else post)
    answers += index.add_many([post._replace(id=post.id + 10_000, apart=frozenset({post.id})) for post in posted[::9]])
print(json.dumps(answers))
"""


def decided(sources: Path) -> list[object]:
    """What the code in a folder decides, in a process of its own: hashes of strings are another in each."""
    answer = subprocess.run(
        [sys.executable, "-c", DECIDE, str(BENCH)],
        env={**os.environ, "PYTHONPATH": str(sources), "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    found: list[object] = json.loads(answer.stdout)
    return found


@pytest.mark.skipif(not repeat_index.IS_COMPILED, reason="there was no C compiler when this was installed")
def test_uncompiled_the_same_source_decides_the_same(tmp_path: Path) -> None:
    shutil.copytree(SOURCES, tmp_path / "headwater", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    compiled_file, is_compiled, *compiled = decided(SOURCES.parent)
    python_file, is_also_compiled, *uncompiled = decided(tmp_path)
    assert (is_compiled, is_also_compiled) == (True, False)
    assert Path(str(python_file)) == tmp_path / "headwater" / "dedup" / "repeat_index.py" != Path(str(compiled_file))
    assert len([one for one in compiled if one]) > 500
    assert uncompiled == compiled
