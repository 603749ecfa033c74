"""What goes wrong in a Celery deployment: messages that come twice, everything due at once, receivers that fail."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise

from api.running import running
from headwater import wire
from headwater.follow.add import follow
from headwater.follow.pool import Candidate, bring_in
from headwater.model import Reader
from headwater.settings import load
from headwater.sim.reddit import serving
from headwater.sim.reddit_world import CommunityHabits, simulated
from headwater.store.tables import crawls
from headwater.wire import BATCH, Parts
from support.cluster import Cluster, add_feeds, count_of, held_back, make_due
from support.processes import wait_until
from support.web import Web
from support.whole import headwater_runs
from webhooks.receiver import receiving

GAP_SECONDS = 0.2


def test_a_task_that_the_broker_delivers_again_while_it_runs_does_nothing_twice(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # H87
    answers = held_back(world, "/slow", "the post")
    source_id = parts.db.write_now(follow, owner, world.url("/slow"), parts.now()).source_id
    workers = [cluster.worker(app="support.impatient_broker") for _ in range(2)]
    sent = cluster.send("tasks.feeds.refresh_feed", source_id)
    wait_until(lambda: sum(worker.text().count(f"[{sent.id}] received") for worker in workers) > 1)
    wait_until(lambda: any(f"[{sent.id}] ignored" in worker.text() for worker in workers))
    answers.set()
    wait_until(lambda: count_of(parts, crawls) == 1)
    cluster.wait_until_idle()
    assert world.paths() == ["/slow"]


def test_after_a_long_rest_two_workers_together_keep_each_hosts_distance(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # H94 D7
    cluster.environ["HEADWATER_HOST_GAP_SECONDS"] = str(GAP_SECONDS)
    add_feeds(parts, owner, world, 50)
    make_due(parts)
    for _ in range(2):
        cluster.worker()
    cluster.beat()
    wait_until(lambda: count_of(parts, crawls) == 50)
    times = [one.at for one in world.asked]
    assert len(times) == 50, "nothing was asked twice in the rush"
    # One request may be held up on its way, so that the next one arrives soon after it.
    assert times[-1] - times[0] >= 48 * GAP_SECONDS
    assert sum(later - earlier < GAP_SECONDS / 2 for earlier, later in pairwise(times)) <= 5


def test_receivers_that_fail_or_hang_hold_up_no_visits_and_no_other_receivers(
    environ: dict[str, str], world: Web, cluster: Cluster
) -> None:  # H96
    settings = {name: value for name, value in environ.items() if name != "HEADWATER_DATABASE_URL"}
    cluster.worker()
    cluster.beat()
    with (
        receiving() as receiver,
        running(environ["HEADWATER_DATABASE_URL"], **settings) as headwater,
        headwater_runs("up", environ=environ),
    ):
        receiver.answers["/broken"] = 500
        receiver.delays["/slow"] = 8.0
        client = headwater.program()
        for path in ("/broken", "/slow", "/well"):
            made = client.post("/api/webhooks", {"address": receiver.url + path, "kinds": ["post.stored"]})
            assert made.status == 201, made.json()
        add_feeds(headwater.parts, headwater.owner, world, 20)
        wait_until(lambda: len(receiver.at("/well")) == 20)
        assert len(receiver.at("/slow")) < 20
        wait_until(lambda: receiver.at("/broken"))

        def by_path() -> dict[str, dict[str, object]]:
            found = client.get("/api/webhooks").json()["items"]
            return {one["address"].rpartition("/")[2]: one for one in found}

        wait_until(lambda: by_path()["broken"]["status"] == "retrying")
        wait_until(lambda: by_path()["well"]["waiting"] == 0)  # what was received is settled a moment later
        shown = by_path()
        assert shown["well"]["status"] == "ok"
        assert shown["broken"]["waiting"] == 20
        assert "500" in str(shown["broken"]["last_error"])
        assert shown["broken"]["next_try_at"]


def test_a_batch_that_is_called_with_force_refresh_caches_the_pool_however_young_it_is(
    environ: dict[str, str], cluster: Cluster
) -> None:  # A15
    with serving(simulated({"alpha": CommunityHabits(), "beta": CommunityHabits()}, seed=3)) as reddit:
        reddit.clock.advance(timedelta(hours=12))
        environ |= {"HEADWATER_REDDIT_URL": reddit.url, "HEADWATER_REDDIT_API_URL": reddit.url}
        environ |= dict(zip(("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET"), reddit.client, strict=True))
        parts = wire.open_parts(load(environ))
        wanted = [Candidate(f"https://www.reddit.com/r/{one}", "low", ("test",)) for one in ("alpha", "beta")]
        parts.db.write_now(bring_in, wire.prepare_store(parts), wanted, parts.now())
        parts.close()
        cluster.worker()

        def cached(**given: bool) -> object:
            return cluster.result(cluster.command("call", BATCH, "--kwargs", json.dumps(given)).strip())

        assert [cached(force_refresh=True), cached(), cached(force_refresh=True)] == [2, 0, 2]
