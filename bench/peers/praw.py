"""PRAW, the library that most programs read Reddit with: the same listings, one after the other, new ids counted."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from peers import CannotBeHad, python_with, version_of

NAME = "praw"
PROGRAM = """
import json, resource, sys, time
import praw

url, communities, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
place = {"reddit_url": url, "oauth_url": url}
reddit = praw.Reddit(client_id="an id", client_secret="a secret", user_agent="bench", check_for_updates=False, **place)
seen = set()

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

for round in range(rounds):
    began, spent, new = time.monotonic(), cpu(), 0
    for number in range(communities):
        for post in reddit.subreddit(f"c{number:04}").new(limit=100):
            if post.fullname not in seen:
                seen.add(post.fullname)
                new += 1
    print(json.dumps({"seconds": time.monotonic() - began, "cpu": cpu() - spent, "new": new}), flush=True)
    sys.stdin.readline()
"""


def start(url: str, communities: int, rounds: int) -> tuple[str, subprocess.Popen[str]]:
    """Returns its version and its process, which prints a line per round and waits for one before the next."""
    python = python_with("praw")
    command: list[str | Path] = [python, "-c", PROGRAM, url, str(communities), str(rounds)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return version_of(python, "praw"), process


def round_of(process: subprocess.Popen[str]) -> dict[str, float]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise CannotBeHad("praw ended")
    found: dict[str, float] = json.loads(line)
    return found
