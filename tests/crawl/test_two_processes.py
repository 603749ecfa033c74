"""Two processes on one database: never the same source at the same time, and no late write after a pause."""

from __future__ import annotations

import signal
import threading
from functools import partial

from sqlalchemy import func, select, update

from headwater import wire
from headwater.follow.add import follow
from headwater.settings import load
from headwater.store.tables import crawls, posts, sources
from headwater.wire import Parts
from support.processes import kill, start, stop, wait_until
from support.web import Answer, Asked, Web, rss


def visits_reach(parts: Parts, count: int) -> bool:
    made = parts.db.read_now(lambda conn: conn.scalar(select(func.count()).select_from(crawls)))
    return bool(made and made >= count)


def test_two_processes_never_visit_one_source_at_the_same_time(environ: dict[str, str], world: Web) -> None:  # D5
    parts = wire.open_parts(load(environ))
    owner = wire.prepare_store(parts)
    for number in range(60):
        world.pages[f"/{number}"] = Answer(rss(f"{number}"), delay=0.05)
        parts.db.write_now(follow, owner, world.url(f"/{number}"), parts.now())
    both = [start(environ), start(environ)]
    for rounds in (1, 2, 3):
        wait_until(partial(visits_reach, parts, 60 * rounds))
        parts.db.write_now(lambda conn: conn.execute(update(sources).values(next_check_at=parts.now())))
    for process in both:
        kill(process)
    assert world.overlaps == []
    assert parts.db.read_now(lambda conn: conn.scalar(select(func.count()).select_from(posts))) == 60
    parts.close()


def test_a_process_paused_past_its_lease_cannot_write_its_late_result(environ: dict[str, str], world: Web) -> None:
    # H85
    parts = wire.open_parts(load(environ))
    owner = wire.prepare_store(parts)
    released = threading.Event()

    def feed(asked: Asked) -> Answer:
        if len(world.asked) > 1:
            return Answer(rss("fresh"))
        released.wait(60)
        return Answer(rss("stale"))

    world.pages["/feed"] = feed
    parts.db.write_now(follow, owner, world.url("/feed"), parts.now())
    paused = start(environ)
    wait_until(lambda: world.asked)
    stop(paused)
    expire = update(sources).values(lease_until=parts.now(), next_check_at=parts.now())
    parts.db.write_now(lambda conn: conn.execute(expire))
    other = start(environ)
    stored = select(posts.c.title)
    wait_until(lambda: parts.db.read_now(lambda conn: conn.execute(stored).all()))
    kill(other)
    released.set()
    paused.send_signal(signal.SIGCONT)
    assert paused.stdout is not None
    assert any(line == "refused\n" for line in paused.stdout)
    kill(paused)
    assert parts.db.read_now(lambda conn: conn.execute(stored).scalars().all()) == ["fresh"]
    parts.close()
