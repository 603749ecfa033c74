"""How well and how fast posts are folded: Headwater beside libraries that find near-duplicates.

    python bench/dedup.py [--sizes 100000,1000000] [--peers datasketch,rensa,scikit-learn] [--sets FOLDER]

First our own labelled posts and the sets in ../shared/data/dedup, the error of the score on held-out posts and stories,
and what people said of merges of real posts (`judged.jsonl`, from `headwater dedup sample --judged SHEET --json`).
Then speed and memory on made-up posts, for repeats
and for stories, each measurement in a process of its own, to which the posts come by a pipe; seconds are CPU seconds.
Peers are installed into environments of their own and
get the threshold that does best on each set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from headwater.dedup.evaluate import (
    agreement,
    engine_for,
    evaluate,
    grouped,
    peak_memory_mb,
    read_labelled,
    shuffled,
)
from headwater.dedup.repeat_index import RepeatIndex
from headwater.dedup.repeats import Posting
from headwater.dedup.stories import StoryIndex
from headwater.dedup.story_rules import LONG_ODDS, ODDS
from peers import CannotBeHad, python_with, version_of
from peers.dedup_posts import posts
from train_verifier import Both, error_on_held_out, folded, sets_in

ROOT = Path(__file__).resolve().parents[1]
SETS = Path(os.environ.get("HEADWATER_TEST_DATA") or ROOT.parent / "shared" / "data") / "dedup"
OWN = ROOT / "tests" / "dedup" / "data" / "repeats.jsonl"
LEVELS = {
    "ndt_en": "repeats",
    "ndt_zh": "repeats",
    "extract": "repeats",
    "uci": "stories",
    "og": "stories",
    "googlenews": "stories",
    "allsides": "stories",
}
# What is aimed at: F1, B-cubed F1 and precision of labelled sets; the share of joins that are not by chance.
GOALS = {
    "ndt_en": "F1 0.996",
    "ndt_zh": "F1 0.996",
    "extract": "F1 0.970",
    "uci": "F1 0.82, B3 0.82, precision 0.90",
    "og": "F1 0.55, B3 0.75, precision 0.65",
    "googlenews": "F1 0.74, B3 0.78, precision 0.88",
    "allsides": "F1 0.62, B3 0.80, precision 0.76",
}
NOT_BY_CHANCE = 0.5
MOST_ERROR = 0.05
JUDGED = Path(__file__).parent / "judged.jsonl"
MOST_RIGHT = "75 % right, 90 % right or of the same topic"
TOGETHER = "20,000 posts/s and 500 MB for both levels together, at any size"
MONTH = 30 * 86400.0
AS_THEY_ARE = Both(ODDS, LONG_ODDS)
THRESHOLDS = (0.5, 0.7, 0.85)
ONE_BY_ONE = 5_000
BATCH = 1_000
MOST_FOR_SCIKIT_LEARN = 100_000


def main() -> None:
    options = _options()
    if options.alone:
        what, *of = options.alone
        print(json.dumps(evaluate(Path(of[0]), of[1]) if what == "quality" else _speed(of[0], int(of[1]))))
        return
    peers = {name: python for name in filter(None, options.peers.split(",")) if (python := _python(name))}
    print(f"{'set':10} {'by':22} precision  recall      f1   b3 f1 largest  posts/s     MB")
    for path in [OWN, *(options.sets / f"{name}.jsonl.xz" for name in LEVELS)]:
        if path.exists():
            compare(path, peers)
        else:
            print(f"{path.name.partition('.')[0]:10} is not there ({path}); HEADWATER_TEST_DATA names another folder")
    spread = options.sets / "spread.jsonl.xz"
    if spread.exists():
        joined, share = not_by_chance(spread)
        print(f"spread     {joined:,} joined, {share:.3f} of them not by chance (goal: {NOT_BY_CHANCE})", flush=True)
        error = error_on_held_out(folded(sets_in(options.sets), AS_THEY_ARE)[0], AS_THEY_ARE)
        print(f"score      error on held-out posts and stories {error:.3f} (goal: {MOST_ERROR})", flush=True)
    if JUDGED.exists():
        judged(JUDGED)
    print(f"\n{'posts':>9} {'by':22} {'posts/s':>8} {'MB':>6}")
    for size in filter(None, options.sizes.split(",")):
        speed(int(size), peers)


def compare(path: Path, peers: dict[str, Path]) -> None:
    """Prints a line for Headwater and for each peer on one labelled set."""
    name = path.name.partition(".")[0]
    _line(name, "headwater", _alone("quality", str(path), LEVELS.get(name, "repeats")))
    if name in GOALS:
        print(f"{'':10} {'goal':22} {GOALS[name]}", flush=True)
    labelled = read_labelled(path)
    texts = [f"{post.posting.title} {post.posting.text}" for post in labelled]
    for peer, python in peers.items():
        tries = []
        for threshold in THRESHOLDS:
            answer = _asked(python, peer, threshold, texts)
            figures = agreement(answer["groups"], [post.story for post in labelled])
            speed_and_size = {"posts_per_s": len(texts) / answer["seconds"], "peak_mb": answer["peak_mb"]}
            tries.append((figures["f1"], threshold, figures | speed_and_size))
        _, threshold, best = max(tries, key=lambda one: one[0])
        _line(name, f"{peer} {version_of(python, peer)} {threshold}", best)


def not_by_chance(path: Path) -> tuple[int, float]:
    """Puts posts of many months into one window, in random order. Whoever joins posts that are more than 30 days apart
    joins by chance. Returns how many posts joined a story, and which share of them not by chance."""
    labelled = shuffled(read_labelled(path, labelled=False), 5)
    times = {one.posting.id: one.posting.created_at for one in read_labelled(path, labelled=False)}
    told: dict[int, list[float]] = {}
    joined = near = 0
    engine = StoryIndex()
    repeats = RepeatIndex().add_many([one.posting for one in labelled])
    fresh = [one.posting for one, repeat in zip(labelled, repeats, strict=True) if repeat is None]
    for post, group in zip(fresh, grouped(fresh, engine), strict=True):
        if group in told:
            joined += 1
            near += min(abs(times[post.id] - time) for time in told[group]) <= MONTH
        told.setdefault(group, []).append(times[post.id])
    return joined, near / max(joined, 1)


def judged(path: Path) -> None:
    """Prints what people said of merges: a line for each sheet that was judged, and one for all."""
    sheets = [json.loads(line) for line in path.read_text().splitlines()]
    merges = [(sheet["of"], next(row for row in sheet["tallies"] if row["pairs"] == "merges")) for sheet in sheets]
    every = {said: sum(row[said] for _, row in merges) for said in ("number", "right", "topic", "wrong")}
    for of, row in [*merges, ("all", every)]:
        right, topic = row["right"] / row["number"], (row["right"] + row["topic"]) / row["number"]
        print(f"by eye     {of}: {row['number']} merges, {right:.0%} right, {topic:.0%} right or same topic")
    print(f"{'':10} goal: {MOST_RIGHT}", flush=True)


def speed(size: int, peers: dict[str, Path]) -> None:
    """Prints a line for Headwater and for each peer on made-up posts."""
    seconds_per_post = megabytes = 0.0
    for level in ("repeats", "stories"):
        ours = _alone("speed", level, str(size), lines=_lines(size + ONE_BY_ONE))
        seconds_per_post, megabytes = seconds_per_post + 1 / ours["posts_per_s"], megabytes + ours["peak_mb"]
        print(f"{size:9,} {f'headwater {level}':22} {ours['posts_per_s']:8,.0f} {ours['peak_mb']:6,.0f}", flush=True)
        print(f"{'':9} one post: median {ours['median_us']:.0f} us, p99 {ours['p99_us']:.0f} us", flush=True)
    print(f"{size:9,} {'both, one after another':22} {1 / seconds_per_post:8,.0f} {megabytes:6,.0f}", flush=True)
    print(f"{'':9} {'goal':22} {TOGETHER}", flush=True)
    texts = [text for text, _ in posts(size)] if peers else []
    for peer, python in peers.items():
        if peer == "scikit-learn" and size > MOST_FOR_SCIKIT_LEARN:
            continue
        answer = _asked(python, peer, 0.7, texts)
        print(f"{size:9,} {peer:22} {size / answer['seconds']:8,.0f} {answer['peak_mb']:6,.0f}", flush=True)


def _speed(level: str, size: int) -> dict[str, float]:
    """Measures posts per CPU second from text to decision, then CPU microseconds for posts one by one."""
    engine = engine_for(level)
    engine.add_many([Posting(-1, "The first post waits for machine code")])
    made = (Posting(at, text, "", when) for at, (text, when) in enumerate(map(json.loads, sys.stdin)))
    seconds = 0.0
    for _ in range(0, size, BATCH):
        batch = list(islice(made, BATCH))
        before = time.process_time()
        engine.add_many(batch)
        seconds += time.process_time() - before
    waits = []
    for post in made:
        before = time.thread_time()
        engine.add_many([post])
        waits.append((time.thread_time() - before) * 1e6)
    waits.sort()
    return {
        "posts_per_s": size / seconds,
        "peak_mb": peak_memory_mb(),
        "median_us": waits[len(waits) // 2],
        "p99_us": waits[len(waits) * 99 // 100],
    }


def _lines(count: int) -> Iterator[str]:
    return (f"{json.dumps(post)}\n" for post in posts(count))


def _alone(*what: str, lines: Iterable[str] = ()) -> dict[str, Any]:
    """Runs one measurement in its own process, so that its peak memory is its own."""
    command = [sys.executable, __file__, "--alone", *what]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.writelines(lines)
        process.stdin.close()
        written = process.stdout.read()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    answer: dict[str, Any] = json.loads(written)
    return answer


def _asked(python: Path, peer: str, threshold: float, texts: list[str]) -> dict[str, Any]:
    script = Path(__file__).parent / "peers" / "dedup_groups.py"
    lines = "\n".join(map(json.dumps, texts))
    run = subprocess.run(
        [python, script, peer, str(threshold)], input=lines, stdout=subprocess.PIPE, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def _python(peer: str) -> Path | None:
    try:
        return python_with(peer)
    except CannotBeHad as why:
        print(f"{peer}: {why}")
        return None


def _line(name: str, by: str, figures: dict[str, float]) -> None:
    print(
        f"{name:10} {by:22} {figures['precision']:9.4f} {figures['recall']:7.4f} {figures['f1']:7.4f}"
        f" {figures['b3_f1']:7.4f} {figures['largest']:7,} {figures['posts_per_s']:8,.0f} {figures['peak_mb']:6,.0f}",
        flush=True,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100000,1000000")
    parser.add_argument("--peers", default="datasketch,rensa,scikit-learn")
    parser.add_argument("--sets", type=Path, default=SETS)
    parser.add_argument("--alone", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
