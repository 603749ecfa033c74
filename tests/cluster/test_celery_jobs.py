"""Periodic work by Celery: what beat sends, who runs it, and how the documents' commands start it."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime, timedelta

import pytest
from celery.exceptions import Reject
from celery.schedules import crontab

from headwater.errors import BadSetting
from headwater.follow.add import follow
from headwater.model import Reader
from headwater.settings import load
from headwater.wire import Parts
from headwater.work import periodic
from support.cluster import Cluster
from support.processes import wait_until
from support.web import Answer, Web, rss

BROKER = {"CELERY_BROKER_URL": "redis://127.0.0.1:6379/1"}


@pytest.fixture
def celery_app(monkeypatch: pytest.MonkeyPatch) -> object:
    """The module, which wants a broker when it is imported."""
    monkeypatch.setenv("CELERY_BROKER_URL", BROKER["CELERY_BROKER_URL"])
    from headwater.work import celery_app

    return celery_app


def test_beat_sends_every_job_of_the_one_table_at_its_clock_times(celery_app: object) -> None:  # A9
    schedule = celery_app.app.conf.beat_schedule  # type: ignore[attr-defined]
    assert list(schedule) == [job.name for job in periodic.JOBS]
    for job in periodic.JOBS:
        entry = schedule[job.name]
        assert (entry["task"], entry["options"]["queue"]) == (job.task, job.queue)
        assert entry["options"].get("expires") == (job.expires.total_seconds() if job.expires else None)
        for after in (datetime(2026, 11, 17, 13, 7, 21, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)):
            assert next_time(entry["schedule"], after) == periodic.next_run(job, after), job.name


def next_time(times: crontab, after: datetime) -> datetime:
    minute = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while not (minute.minute in times.minute and minute.hour in times.hour):
        minute += timedelta(minutes=1)
    return minute


def test_the_documents_tasks_and_queues_are_there(celery_app: object) -> None:  # A9
    app = celery_app.app  # type: ignore[attr-defined]
    routes = {
        "tasks.crawler.crawl_community": "crawler_queue",
        "tasks.crawler.crawl_seed_communities": "crawler_queue",
        "tasks.crawler.crawl_seed_communities_incremental": "crawler_queue",
        "tasks.crawler.crawl_low_quality_communities": "crawler_queue",
        "tasks.monitoring.monitor_api_calls": "monitoring_queue",
        "tasks.monitoring.monitor_cache_health": "monitoring_queue",
        "tasks.monitoring.monitor_crawler_health": "monitoring_queue",
        "tasks.monitoring.monitor_warmup_metrics": "monitoring_queue",
        "tasks.metrics.generate_daily": "monitoring_queue",
        "tasks.maintenance.cleanup_expired_posts_hot": "cleanup_queue",
    }
    assert {name: app.conf.task_routes[name]["queue"] for name in routes} == routes
    assert {*routes, "tasks.feeds.refresh_feed"} <= set(app.tasks)
    named = {"analysis_queue", "maintenance_queue", "cleanup_queue", "crawler_queue", "monitoring_queue"}
    assert [queue.name for queue in app.conf.task_queues][:2] == ["high", "default"]
    assert {queue.name for queue in app.conf.task_queues} == named | {"high", "default"}


def test_celerys_variables_mean_what_they_say(celery_app: object) -> None:  # A12
    given = {
        "CELERY_BROKER_URL": "redis://broker:6379/1",
        "CELERY_RESULT_BACKEND": "redis://results:6379/2",
        "CELERY_WORKER_COUNT": "4",
        "CELERY_QUEUE_NAMES": "analysis_queue, crawler_queue,monitoring_queue",
    }
    told = celery_app.configuration(load(given).settings)  # type: ignore[attr-defined]
    assert (told["broker_url"], told["result_backend"]) == ("redis://broker:6379/1", "redis://results:6379/2")
    assert told["worker_concurrency"] == 4
    taken = ["high", "default", "analysis_queue", "crawler_queue", "monitoring_queue"]
    assert [queue.name for queue in told["task_queues"]] == taken
    only = celery_app.configuration(load(given | {"CELERY_QUEUE_NAMES": "high"}).settings)  # type: ignore[attr-defined]
    assert [queue.name for queue in only["task_queues"]] == ["high"]
    with pytest.raises(BadSetting, match="CELERY_BROKER_URL is not set"):
        celery_app.configuration(load({}).settings)  # type: ignore[attr-defined]


def test_no_task_may_take_as_long_as_the_broker_waits_before_it_delivers_again(celery_app: object) -> None:  # H87
    app = celery_app.app  # type: ignore[attr-defined]
    visibility = app.conf.broker_transport_options["visibility_timeout"]
    ours = [task for name, task in app.tasks.items() if name.startswith("tasks.")]
    retries = sum(celery_app.RETRY_SECONDS * 2**attempt for attempt in range(3))  # type: ignore[attr-defined]
    assert all((task.time_limit or app.conf.task_time_limit) + retries < visibility for task in ours)
    assert app.conf.task_time_limit == 120 < load({}).settings.lease_seconds == 180
    assert app.conf.task_time_limit > celery_app.VISIT_SECONDS + celery_app.cluster.SHIFT_SECONDS  # type: ignore[attr-defined]
    assert {task.max_retries for task in ours} == {3}  # D9
    assert all(task.acks_late and task.reject_on_worker_lost for task in ours)
    assert app.conf.worker_prefetch_multiplier == 1


def test_the_documents_commands_work_as_it_shows_them(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster, environ: dict[str, str]
) -> None:  # A13 A14
    world.pages["/feed"] = Answer(rss("one", "two"))
    parts.db.write_now(follow, owner, world.url("/feed"), parts.now())
    cluster.worker()
    sent = cluster.command("call", "tasks.crawler.crawl_seed_communities").strip()
    assert re.fullmatch(r"[0-9a-f-]{36}", sent)
    assert cluster.result(sent) == 0, "the pool is empty"
    program = (
        "from headwater.work.celery_app import cleanup_expired_posts_hot, crawl_community\n"
        f"print(crawl_community.delay({world.url('/feed')!r}).id)\n"
        "print(cleanup_expired_posts_hot.delay().id)\n"
    )
    crawled, cleaned = cluster.python(program).split()
    report = cluster.result(crawled)
    assert (report["new_posts"], report["updated_posts"], report["duplicates"]) == (2, 0, 0)
    assert report["community"] == world.url("/feed")
    assert report["watermark_updated"] is True
    assert report["duration_seconds"] > 0
    assert cluster.result(cleaned) == 0
    assert json.loads(cluster.redis.get(f"celery-task-meta-{cleaned}"))["status"] == "SUCCESS"  # type: ignore[arg-type]


def test_of_what_two_beats_send_for_one_time_one_runs(parts: Parts, owner: Reader, cluster: Cluster) -> None:  # H84
    worker = cluster.worker()
    for _ in range(2):
        cluster.beat()
    job = next(job for job in periodic.JOBS if job.name == "daily-metrics")
    wait_until(lambda: worker.text().count(f"Task {job.task}[") >= 4, 240)  # received, done; received, rejected
    lines = [line for line in worker.text().splitlines() if f"Task {job.task}[" in line]
    assert sum("succeeded" in line for line in lines) == 1
    assert sum("is done for this time" in line for line in lines) == 1


def test_a_job_that_kills_its_worker_is_tried_twice_and_no_more(
    parts: Parts, owner: Reader, cluster: Cluster
) -> None:  # H88
    worker = cluster.worker(app="support.killing_job")
    cluster.send("tasks.tests.kill", queue="default")
    wait_until(lambda: "tried too often" in worker.text())
    cluster.wait_until_idle()
    assert worker.text().count("Task tasks.tests.kill[") == 4  # received three times, and rejected
    assert cluster.result(cluster.send("tasks.maintenance.heal_clock").id) == 0, "the worker lives"


def test_tasks_without_work_are_logged_for_those_who_want_to_see_them(
    celery_app: object, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("celery.app.trace")
    for level, shown in ((logging.INFO, ["INFO"]), (logging.WARNING, [])):
        caplog.clear()
        with caplog.at_level(level, log.name):
            log.error("rejected", exc_info=Reject("The source 1 is not due.", requeue=False))
        assert [record.levelname for record in caplog.records] == shown
