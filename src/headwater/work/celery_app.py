"""Celery's application: what `celery -A headwater.work.celery_app worker`, `beat` and `call` start and send.

A worker process has one event loop and one crawler, as `headwater up` has, and visits many sources at once. `beat`
sends the periodic work (`periodic.JOBS`), and runs a dispatcher, which sends what is due (`cluster.Dispatcher`). Any
number of workers and beats can run. A task that finds nothing to do is rejected and not sent again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import msgspec
import structlog
from celery import Celery, signals
from celery.beat import Scheduler
from celery.exceptions import Ignore, Reject
from celery.schedules import crontab
from celery.worker.control import inspect_command
from kombu import Queue
from kombu.exceptions import OperationalError

from headwater import wire
from headwater.app import instance, refresh
from headwater.app.cluster import CLOCK_COMMAND, messages_in
from headwater.coordination.locks import Locks
from headwater.coordination.redis_locks import RedisLocks
from headwater.crawl.record import report
from headwater.errors import BadSetting, StoreUnavailable
from headwater.model import SavedVisit
from headwater.settings import load
from headwater.settings.table import Settings
from headwater.store import visits
from headwater.store.log.locks import StoreLocks
from headwater.store.sources import schedule
from headwater.wire import Parts
from headwater.work import cluster, periodic
from headwater.work.cluster import Dispatcher, Message, SentHere
from headwater.work.periodic import CRAWLER, DEFAULT, FEED_QUEUES, HIGH, JOBS, QUEUES, Job

VISIT_SECONDS = 90  # a visit and the shift it belongs to end within the limit of a task
FEED_LIMIT_SECONDS = 120  # the lease, which is the lock, lasts for 180 s
JOB_LIMIT_SECONDS = 1800
VISIBILITY_SECONDS = 3600  # what a dead worker had in hand is delivered again after this; no task may take as long
RESULT_SECONDS = 86400
RETRIES = 3
RETRY_SECONDS = 5
TASKS_PER_PROCESS = 500
LOCK_MARGIN = timedelta(seconds=1)
T = TypeVar("T")
log = structlog.get_logger()


def configuration(settings: Settings) -> dict[str, Any]:
    """Returns what Celery is told. Pure."""
    if settings.celery_broker_url is None:
        raise BadSetting(
            "CELERY_BROKER_URL is not set. Workers get their work from there, such as redis://host:6379/1."
        )
    broker = settings.celery_broker_url.get_secret_value()
    backend = settings.celery_result_backend.get_secret_value() if settings.celery_result_backend else None
    return {
        "broker_url": broker,
        "result_backend": backend or (broker if broker.startswith(("redis", "unix")) else None),
        "result_expires": RESULT_SECONDS,
        "broker_connection_retry_on_startup": True,
        "broker_transport_options": {
            "visibility_timeout": VISIBILITY_SECONDS,
            "queue_order_strategy": "priority",  # `high` comes first
            "socket_connect_timeout": 5,
            "global_keyprefix": "celery:",  # LLEN celery:default
        },
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_track_started": True,
        "task_time_limit": FEED_LIMIT_SECONDS,
        "task_default_queue": DEFAULT,
        "task_queues": [Queue(name, routing_key=name) for name in queues(settings.celery_queue_names)],
        "task_routes": {job.task: {"queue": job.queue} for job in JOBS}
        | {periodic.CRAWL_COMMUNITY: {"queue": CRAWLER}},
        "worker_prefetch_multiplier": 1,
        "worker_concurrency": settings.celery_worker_count,
        "worker_max_tasks_per_child": TASKS_PER_PROCESS,
        "worker_redirect_stdouts": False,
        "beat_schedule": {job.name: entry(job) for job in JOBS},
        "beat_scheduler": f"{__name__}:Timetable",
        "timezone": "UTC",
    }


def queues(names: str | None) -> tuple[str, ...]:
    """Returns the queues that a worker takes tasks from, in their order. Pure."""
    chosen = tuple(name.strip() for name in names.split(",") if name.strip()) if names else QUEUES
    return chosen if set(chosen) & set(FEED_QUEUES) else (HIGH, DEFAULT, *chosen)


def entry(job: Job) -> dict[str, Any]:
    """Returns a job as beat has it. Pure."""
    options: dict[str, Any] = {"queue": job.queue, "headers": {"job": job.name}}
    if job.expires:
        options["expires"] = job.expires.total_seconds()
    return {"task": job.task, "schedule": clock_times(job.every), "options": options}


def clock_times(every: timedelta) -> crontab:
    """Returns the clock times, in UTC, of what runs every so often: `periodic.next_run` has the same. Pure."""
    minutes = int(every.total_seconds() // 60)
    if minutes < 60 and 60 % minutes == 0:
        return crontab(minute=f"*/{minutes}")
    if minutes % 60 == 0 and minutes < 1440 and 1440 % minutes == 0:
        return crontab(minute="0", hour=f"*/{minutes // 60}")
    if minutes == 1440:
        return crontab(minute="0", hour="0")
    raise ValueError(f"there are no clock times for every {every}")


_loaded = load()
app = Celery("headwater")
app.conf.update(configuration(_loaded.settings))
# For sending alone: where results are kept, Celery would wait for the result of everything that was sent.
sender = Celery("headwater", set_as_current=False)
sender.conf.update(configuration(_loaded.settings) | {"result_backend": None})


@inspect_command(name=CLOCK_COMMAND)  # type: ignore[untyped-decorator]  # Celery has no types
def _tell_time(_state: Any) -> dict[str, float]:
    """Lets `headwater doctor` compare the clocks of the machines."""
    return {"time": time.time()}


class Worker:
    """What one worker process works with, for as long as it lives: an event loop, the store, and a crawler."""

    def __init__(self) -> None:
        settings = _loaded.settings
        wire.configure_logs(settings.log_level, settings.log_format)
        short = settings.model_copy(update={"visit_seconds": min(settings.visit_seconds, VISIT_SECONDS)})
        self.runner = wire.new_runner()
        self.parts = wire.open_parts(_loaded._replace(settings=short))
        self._stack = AsyncExitStack()
        self._saved: list[SavedVisit] = []
        self.crawler = self.runner.run(self._stack.enter_async_context(wire.crawling(self.parts, self._on_saved)))
        redis = wire.redis_url(settings)
        self.locks: Locks = RedisLocks(redis) if redis else StoreLocks(self.parts.db, self.parts.now)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @contextmanager
    def visiting(self, task: Any) -> Iterator[list[SavedVisit]]:
        """Yields the visits that are saved in this block, which carries out a task."""
        self._saved = []
        if self.parts.marks:
            self.parts.marks.task_id = task.request.id
        yield self._saved

    def close(self) -> None:
        self.run(self._stack.aclose())
        self.runner.close()
        self.parts.close()

    def _on_saved(self, saved: SavedVisit) -> None:
        """Keeps the result of a task that somebody waits for, whichever task brought it."""
        self._saved.append(saved)
        if saved.task_id and app.conf.result_backend:
            with suppress(OperationalError, OSError):  # the store has it as well
                app.backend.store_result(saved.task_id, result_of(saved), "SUCCESS")


@cache
def worker() -> Worker:
    """Returns what this process works with. It is opened by the first task: a process that forks must not have it."""
    return Worker()


def result_of(saved: SavedVisit) -> dict[str, Any]:
    """Returns the result of a task that visited one source. Pure."""
    found = visits.task_result(saved, "")
    return {
        "success": found.success and saved.accepted,
        "feed_id": saved.visit.source_id,
        "article_count": found.article_count,
        "duration_ms": found.duration_ms,
        "error": found.error,
    }


def _refresh_feed(task: Any, feed_id: int | str, force_immediate: bool = False, **_given: Any) -> dict[str, Any]:
    """Visits one source. What else a message says about it is not believed: the store knows.

    A task that needs another visit (its host is paused, or it failed and is tried again) stays in the store. The
    dispatcher sends it again under its id when that visit is due. Until then Celery has no result of it.
    """
    parts, source_id = worker().parts, int(feed_id)
    with worker().visiting(task) as saved:
        if force_immediate and not parts.db.write_now(schedule.ask, source_id, parts.now()):
            raise _nothing_to_do(task, f"The source {source_id} is being visited, or is gone.")
        if not worker().run(_visit_due([source_id], task.request.id)):
            raise _nothing_to_do(task, f"The source {source_id} is not due, or is being visited.")
    visited = next(one for one in saved if one.visit.source_id == source_id)
    if visited.pending_task_id == task.request.id:
        raise Ignore(f"The source {source_id} needs another visit.")
    return result_of(visited)


def _nothing_to_do(task: Any, why: str) -> Ignore | Reject:
    """Returns what ends a task that cannot be carried out now. Celery stores a failure for one that is rejected.

    So a task that the store has is not: whoever visits its source stores the result.
    """
    is_stored = worker().parts.db.read_now(schedule.has_task, str(task.request.id))
    return Ignore(why) if is_stored else Reject(why, requeue=False)


def _refresh_feeds(task: Any, feed_ids: list[int]) -> dict[str, int]:
    with worker().visiting(task) as saved:
        if not worker().run(_visit_due(feed_ids)):
            raise Reject("None of these sources is due and free.", requeue=False)
    return {
        "visited": len(saved),
        "failed": sum(one.visit.outcome == "failed" for one in saved),
        "new_posts": sum(one.count("new") for one in saved),
    }


async def _visit_due(ids: list[int], task_id: str | None = None) -> int:
    parts = worker().parts
    return await cluster.visit_due(parts.db, worker().crawler, wire.pace(parts.settings), parts.now, ids, task_id)


def _crawl_community(task: Any, community: str) -> dict[str, Any]:
    """Visits a source that the owner follows, and reports what the visit found."""
    parts = worker().parts
    owner = instance.owner(parts.db)
    [source_id] = parts.db.read_now(refresh.chosen, owner, parts.now(), names=[str(community)])
    if not parts.db.write_now(schedule.ask, source_id, parts.now()):
        raise Reject(f"{community} is being visited.", requeue=False)
    with worker().visiting(task) as saved:
        if not worker().run(_visit_due([source_id])):
            raise Reject(f"{community} waits for its host, or is being visited. It goes first.", requeue=False)
    return report(next(one for one in saved if one.visit.source_id == source_id))


def _run_job(task: Any, force_refresh: bool = False) -> Any:
    """Runs periodic work. Of what several beats send for one time, one runs."""
    name = (task.request.headers or {}).get("job")
    job = periodic.named(name or task.name)
    assert job is not None
    if not worker().run(_may_run(job, task, is_scheduled=name is not None)):
        raise Reject(f"{job.name} is done for this time, or was tried too often.", requeue=False)
    return plain(worker().run(_work(job, _job_tools(worker().parts, force_refresh))))


async def _work(job: Job, tools: periodic.JobTools) -> object:
    return await job.work(tools)


async def _may_run(job: Job, task: Any, *, is_scheduled: bool) -> bool:
    """Returns whether this run is the first one for its time, or the second try of one whose worker died.

    A job that kills its worker is not delivered for ever.
    """
    now, locks, task_id = worker().parts.now(), worker().locks, str(task.request.id)
    lease = max(periodic.next_run(job, now) - now - LOCK_MARGIN, LOCK_MARGIN)
    is_second = bool((task.request.delivery_info or {}).get("redelivered"))
    try:
        if is_second:
            return (
                await locks.acquire(f"tasklock:again:{task_id}", task_id, timedelta(seconds=RESULT_SECONDS)) is not None
            )
        return not is_scheduled or await locks.acquire(f"tasklock:job:{job.name}", task_id, lease) is not None
    except StoreUnavailable as error:
        log.warning("job.unlocked", job=job.name, error=error.detail)
        return True  # a job that runs twice does no harm


def _job_tools(parts: Parts, force_refresh: bool) -> periodic.JobTools:
    async def left_to_the_dispatcher(_: Parts) -> None:
        return None

    return wire.periodic_tools(parts, left_to_the_dispatcher, force_refresh=force_refresh)


def plain(result: Any) -> Any:
    """Returns the result of a job as JSON has it: rows as objects. Pure."""
    if hasattr(result, "_asdict"):
        return plain(result._asdict())
    if isinstance(result, dict):
        return {str(name): plain(value) for name, value in result.items()}
    if isinstance(result, list | tuple | set):
        return [plain(value) for value in result]
    return msgspec.to_builtins(result, enc_hook=str)


def _task(name: str, function: Any, **options: Any) -> Any:
    return app.task(
        name=name,
        bind=True,
        autoretry_for=(StoreUnavailable,),
        max_retries=RETRIES,
        retry_backoff=RETRY_SECONDS,
        **options,
    )(function)


refresh_feed = _task(periodic.REFRESH_FEED, _refresh_feed)
refresh_feeds = _task(periodic.REFRESH_FEEDS, _refresh_feeds)
crawl_community = _task(periodic.CRAWL_COMMUNITY, _crawl_community)
_jobs = {name: _task(name, _run_job, time_limit=JOB_LIMIT_SECONDS) for name in dict.fromkeys(job.task for job in JOBS)}
crawl_seed_communities = _jobs["tasks.crawler.crawl_seed_communities"]
crawl_seed_communities_incremental = _jobs["tasks.crawler.crawl_seed_communities_incremental"]
crawl_low_quality_communities = _jobs["tasks.crawler.crawl_low_quality_communities"]
cleanup_expired_posts_hot = _jobs["tasks.maintenance.cleanup_expired_posts_hot"]
generate_daily = _jobs["tasks.metrics.generate_daily"]


class CeleryBroker:
    """Sends through Celery. It does not wait for a broker that is away: what is due is in the store."""

    def send(self, message: Message) -> None:
        with _reachable():
            sender.send_task(message.task, message.arguments, queue=message.queue, task_id=message.task_id, retry=False)

    def waiting(self, queue: str) -> int:
        with _reachable(), sender.pool.acquire(block=True) as connection:
            return messages_in(connection, queue)


@contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except (OperationalError, OSError, *_broker_errors()) as error:
        raise ConnectionError(f"The broker cannot be reached: {error}") from error


@cache
def _broker_errors() -> tuple[type[Exception], ...]:
    """Returns what the client of this broker raises while it is away. Kombu translates it in some places only."""
    errors: tuple[type[Exception], ...] = sender.connection_for_write().connection_errors
    return errors


class Timetable(Scheduler):  # type: ignore[misc]  # Celery has no types
    """Says when beat sends which job. It has no file that two beats would fight for.

    Celery's own waits after its clock was set back until it is again as late as when it sent a job last.
    """

    def tick(self, *given: Any, **named: Any) -> float:
        now = self.app.now()
        ahead = [entry for entry in self.schedule.values() if entry.last_run_at > now]
        for entry in ahead:
            entry.last_run_at = now
        if ahead:
            self._heap = None  # the times of all entries are calculated again
        return float(super().tick(*given, **named))


def dispatch(stop: threading.Event) -> None:
    """Sends each job once, as `headwater up` runs each when it starts, then what is due until `stop` is set."""
    settings = _loaded.settings
    wire.configure_logs(settings.log_level, settings.log_format)
    with wire.new_runner() as runner:
        runner.run(_dispatch(stop))


async def _dispatch(stop: threading.Event) -> None:
    parts = wire.open_parts(_loaded)
    marks = wire.open_marks(parts)
    stopping = asyncio.Event()
    watching = asyncio.create_task(_when_set(stop, stopping))
    try:
        with suppress(ConnectionError):
            await asyncio.to_thread(_send_jobs)
        sent = marks or SentHere(parts.now)
        await Dispatcher(parts.db, CeleryBroker(), parts.now, sent.first_to_send).run(stopping)
    finally:
        watching.cancel()
        if marks:
            await marks.close()
        parts.close()


async def _when_set(stop: threading.Event, stopping: asyncio.Event) -> None:
    while not stop.is_set():
        await asyncio.sleep(cluster.LOOK_SECONDS)
    stopping.set()


def _send_jobs() -> None:
    with _reachable():
        for job in JOBS:
            sender.send_task(job.task, retry=False, **entry(job)["options"])


def _start_dispatcher(**_: Any) -> None:
    """A beat that ends takes its dispatcher along: it has nothing that could be lost."""
    threading.Thread(target=dispatch, args=(threading.Event(),), name="dispatcher", daemon=True).start()


def _close_worker(**_: Any) -> None:
    if worker.cache_info().currsize:
        worker().close()


def _quiet(record: logging.LogRecord) -> bool:
    """That there is nothing to do is no trouble: a message came twice, or somebody was faster."""
    if record.exc_info and isinstance(record.exc_info[1], Reject):
        record.exc_info, record.levelno, record.levelname = None, logging.INFO, "INFO"
        return logging.getLogger(record.name).isEnabledFor(logging.INFO)
    return True


logging.getLogger("celery.app.trace").addFilter(_quiet)
signals.beat_init.connect(_start_dispatcher, weak=False)
signals.beat_embedded_init.connect(_start_dispatcher, weak=False)
signals.worker_process_shutdown.connect(_close_worker, weak=False)
