"""Measuring against labels: the arithmetic, the files, and the figures that our own labelled posts have to reach."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from dedup.repeats_reference import PlainIndex
from headwater.dedup.evaluate import agreement, evaluate, measured, read_labelled, shuffled
from headwater.errors import BadInput

OWN = Path(__file__).parent / "data" / "repeats.jsonl"
GOALS = {"ndt_en": (0.98, 0.97), "ndt_zh": (0.98, 0.98), "extract": (0.98, 0.97)}


def test_our_own_labelled_posts_are_grouped_without_a_mistake() -> None:
    # C1, C3: English, Chinese, mixed and other scripts, with traps.
    for figures in (evaluate(OWN), measured(read_labelled(OWN), PlainIndex())):
        assert (figures["precision"], figures["recall"], figures["b3_f1"]) == (1.0, 1.0, 1.0)
        assert figures["largest"] == 9


@pytest.mark.parametrize("name", GOALS)
def test_posts_that_nobody_here_labelled_reach_the_goal(name: str, measuring_data: Path) -> None:
    precision, f1 = GOALS[name]
    figures = evaluate(measuring_data / "dedup" / f"{name}.jsonl.xz")
    assert figures["precision"] >= precision
    assert figures["f1"] >= f1


def test_agreement_counts_pairs_and_what_each_post_finds_in_its_group() -> None:
    figures = agreement([1, 1, 2, 2], ["a", "a", "a", "b"])
    assert figures == {"precision": 0.5, "recall": 0.3333, "f1": 0.4, "b3_f1": 0.7059, "largest": 2}
    assert agreement([], [])["f1"] == 0.0


def test_posts_are_read_in_the_order_of_their_time(tmp_path: Path) -> None:
    lines = [{"id": n, "story": "s", "title": f"t{n}", "created_at": at} for n, at in enumerate((30, 10, 20))]
    path = tmp_path / "posts.jsonl.xz"
    path.write_bytes(lzma.compress("\n".join(map(json.dumps, lines)).encode()))
    assert [post.posting.title for post in read_labelled(path)] == ["t1", "t2", "t0"]


def test_posts_without_a_time_are_read_as_the_file_has_them(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text('{"id": "b", "story": "1", "text": "x", "kind": "?"}\n\n{"id": "a", "story": "1", "title": "y"}\n')
    assert [post.posting.id for post in read_labelled(path)] == [0, 2]


def test_shuffled_posts_keep_their_labels_and_lose_order_and_time() -> None:
    posts = read_labelled(OWN)
    mixed = shuffled(posts, 1)
    assert mixed == shuffled(posts, 1)
    assert [post.posting.id for post in mixed] != [post.posting.id for post in posts]
    assert {post.posting.created_at for post in mixed} == {0.0}
    assert {post.posting.id: post.story for post in mixed} == {post.posting.id: post.story for post in posts}


def test_our_own_labelled_posts_are_grouped_almost_as_well_in_any_order() -> None:
    figures = evaluate(OWN, shuffle=1)
    assert figures["precision"] == 1.0
    assert figures["recall"] >= 0.9


@pytest.mark.parametrize("content", [b"{", b'{"id": 1}', b"[]", b"\xff\xfe"])
def test_a_file_that_is_something_else_is_refused_with_the_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="line 1"):
        read_labelled(path)


def test_there_are_two_levels() -> None:
    with pytest.raises(BadInput, match="repeats or stories"):
        evaluate(OWN, "tales")
