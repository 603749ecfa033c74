"""What it costs to keep up with Reddit's communities, beside PRAW; and to choose who is due among many sources.

python bench/reddit.py [--communities 1000] [--rounds 3] [--parts quiet,visits,praw,due] [--profile]

quiet    a visit that finds nothing new: requests and rows written, counted
visits   visits a second and CPU for each, and where it goes; listings have 100 posts, the simulator has a process
         of its own and no limits. `5 % of communities`: so many have five new posts, in the others nothing happens;
         `5 % of posts`: every community has five new ones; `5 new of 50 listed`: so too, in listings as the highest
         tier has them; `and all scores`: five new ones, and all others of the 100 have other scores
praw     the same listings read by PRAW, which keeps nothing but the ids it has seen
due      choosing and claiming the next visits among 100,000 sources, as the posts in the store grow
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, func, select, update

import reddit_due
from headwater import wire
from headwater.follow.add import follow
from headwater.follow.pool import BY_NAME
from headwater.store.tables import crawls, event_outbox, post_versions, posts, sources
from headwater.wire import Parts
from peers import CannotBeHad, praw
from reddit_server import Simulator, name_of, simulator
from rounds import Round, Visiting, profiled, rounds, store

GOAL = 300.0
SHARES = {"nothing new": 0.0, "5 % of communities": 0.05, "5 % of posts": 1.0}


def main() -> None:
    asked = _arguments()
    print(f"{asked.communities:,} communities, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.")
    if "quiet" in asked.parts:
        asyncio.run(quiet(min(asked.communities, 50)))
    if "visits" in asked.parts:
        asyncio.run(visits(asked.communities, asked.rounds, asked.profile))
    if "praw" in asked.parts:
        beside_praw(asked.communities, asked.rounds)
    if "due" in asked.parts:
        reddit_due.curve(asked.sources, asked.posts)


async def quiet(communities: int) -> None:
    with simulator(communities, scores_move=False) as reddit, followed(reddit, communities) as parts:
        async with rounds(parts, communities) as round:
            await round()
            reddit.requests()
            before = rows(parts)
            made = (await round()).visits
            written = ", ".join(f"{name} {count - before[name]}" for name, count in rows(parts).items())
            print(f"\n{made} visits with nothing new: {reddit.requests()} requests; rows written: {written}")


async def visits(communities: int, times: int, with_profile: bool) -> None:
    print(f"\n{'':<26}{'visits/s':>9}{'ms CPU':>8}   {'loop':>6}{'store':>7}{'readers':>8}{'new posts':>11}")
    for scores_move, shares in ((False, SHARES), (True, {"and all scores": 1.0})):
        with simulator(communities, scores_move=scores_move) as reddit, followed(reddit, communities) as parts:
            async with rounds(parts, communities) as round:
                first = await round()
                if not scores_move:
                    show("first visit", [first])
                for name, share in shares.items():
                    show(name, [await after(reddit, share, round) for _ in range(times)])
                if not scores_move:
                    await parts.db.write(list_as_in_the_highest_tier)
                    await after(reddit, 1.0, round)
                    show("5 new of 50 listed", [await after(reddit, 1.0, round) for _ in range(times)])
                if with_profile:
                    await profiled(lambda: after(reddit, 1.0, round))


def list_as_in_the_highest_tier(conn: Connection) -> None:
    """Communities that publish so much are in it, and its listings are shorter."""
    high = BY_NAME["high"]
    conn.execute(update(sources).values(settings={"sort": high.sort, "limit": high.limit}))


async def after(reddit: Simulator, share: float, round: Visiting) -> Round:
    """Runs a round of visits after something happened in this share of the communities."""
    reddit.step(share)
    return await round()


def show(name: str, rounds: list[Round]) -> None:
    """Prints the best round, because the machine may be shared."""
    best = max(rounds, key=lambda one: one.visits / one.seconds)
    cheapest = min(rounds, key=lambda one: one.total_cpu)
    per_visit = {part: spent / cheapest.visits * 1000 for part, spent in cheapest.cpu.items()}
    speed = best.visits / best.seconds
    goal = f"  (goal {GOAL:.0f}: {'reached' if speed >= GOAL else 'MISSED'})" if name.startswith("5 ") else ""
    print(
        f"{name:<26}{speed:>9.0f}{sum(per_visit.values()):>8.2f}   {per_visit['loop']:>6.2f}{per_visit['store']:>7.2f}"
        f"{per_visit['readers']:>8.2f}{best.new:>11,}{goal}",
        flush=True,
    )


def beside_praw(communities: int, times: int) -> None:
    with simulator(communities, scores_move=False) as reddit:
        try:
            version, process = praw.start(reddit.url, communities, times)
        except CannotBeHad as reason:
            print(f"\npraw cannot be had here: {reason}")
            return
        with process:
            found = []
            for _ in range(times):
                found.append(praw.round_of(process))
                reddit.step(1.0)
                assert process.stdin is not None
                process.stdin.write("\n")
                process.stdin.flush()
    best = min(found[1:] or found, key=lambda one: one["cpu"])
    speed, cost = communities / best["seconds"], best["cpu"] / communities * 1000
    print(f"{f'praw {version}':<26}{speed:>9.0f}{cost:>8.2f}   {'':>21}{best['new']:>11,.0f}  (5 % of posts)")


@contextmanager
def followed(reddit: Simulator, communities: int) -> Iterator[Parts]:
    """Makes an empty store that follows them all."""
    environ = {
        "HEADWATER_REDDIT_RATE_LIMIT": "0",
        "HEADWATER_REDDIT_URL": reddit.url,
        "HEADWATER_REDDIT_API_URL": reddit.url,
        "HEADWATER_REDDIT_CLIENT_ID": "an id",
        "HEADWATER_REDDIT_CLIENT_SECRET": "a secret",
    }
    with store(environ) as parts:
        owner = wire.prepare_store(parts)
        for number in range(communities):
            parts.db.write_now(follow, owner, f"r/{name_of(number)}", parts.now())
        yield parts


def rows(parts: Parts) -> dict[str, int]:
    def work(conn: Connection) -> dict[str, int]:
        counted = {"posts": posts, "versions": post_versions, "events": event_outbox, "visits": crawls}
        found = {name: conn.scalar(select(func.count()).select_from(table)) or 0 for name, table in counted.items()}
        last = conn.scalar(select(func.sum(func.unixepoch(posts.c.fetched_at)))) or 0
        return {**found, "posts touched": last}

    return parts.db.read_now(work)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--communities", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", type=lambda text: text.split(","), default="quiet,visits,praw,due")
    parser.add_argument("--sources", type=int, default=100_000)
    parser.add_argument("--posts", type=_numbers, default="10000,100000,1000000", help="sizes of the store")
    parser.add_argument("--profile", action="store_true")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
