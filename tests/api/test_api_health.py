"""`/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

import re
from datetime import timedelta

from api.running import Running, running
from headwater.http.metrics import METRICS, PROCESS
from headwater.wire import utc_now
from support.log import consume_all
from support.posts import a_post, visited


def test_metrics_have_durations_posts_queues_process_and_build(on_both: Running) -> None:
    client, parts = on_both.program(), on_both.parts
    client.get("/api/stream")
    source = on_both.source()
    found = parts.db.write_now(visited, source, [a_post("1"), a_post("2")], parts.now())
    on_both.metrics.note_visit(found)
    text = client.get("/metrics").text
    for line in (
        'headwater_request_seconds_count{route="/api/stream"} 1.0',
        'headwater_request_seconds_bucket{le="+Inf",route="/api/stream"} 1.0',
        "headwater_visit_seconds_count 1.0",
        'headwater_posts_total{change="new"} 2.0',
        'headwater_queue_depth{queue="webhooks"} 0.0',
        'headwater_queue_depth{queue="images"} 0.0',
        "process_resident_memory_bytes ",
    ):
        assert line in text
    assert f'headwater_build{{database="{parts.db.engine.dialect.name}",python=' in text
    declared = {one.name + ("_total" if one.kind == "counter" else "") for one in METRICS} | PROCESS.keys()
    answered = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
    assert {name for name in answered if not name.endswith("_created")} <= declared


def test_metrics_count_requests_and_sources(on_both: Running) -> None:
    on_both.publish(on_both.source("https://one.example/"), next_check_at=on_both.parts.now() - timedelta(seconds=1))
    on_both.source("https://two.example/")
    client = on_both.program()
    client.get("/api/posts/77")
    client.get("/nothing/at/all")
    text = client.get("/metrics").text
    for line in (
        'headwater_requests_total{method="GET",route="/api/posts/{post_id}",status="404"} 1.0',
        'headwater_requests_total{method="GET",route="unknown",status="404"} 1.0',
        'headwater_sources{status="new"} 1.0',
        'headwater_sources{status="ok"} 1.0',
        "headwater_sources_due 2.0",
    ):
        assert line in text


def test_health_and_readiness_need_no_credentials(on_both: Running) -> None:
    for path in ("/healthz", "/readyz"):
        answer = on_both.stranger.get(path)
        assert (answer.status, answer.json()) == (200, {"status": "ok"})


NAMED = ("kafka_consumer_lag", "outbox_backlog", "dlq_count", "cache_hit_rate", "forecast_freshness_sec")


def test_health_has_the_names_that_others_ask_for(on_both: Running) -> None:  # E13
    answer = on_both.program().get("/api/health").json()
    assert answer["status"] == answer["state"]
    figures = {one["name"]: one for one in answer["figures"] if one["consumer"] is None}
    for name in NAMED:
        assert answer[name] == figures[name]["value"]
        assert (answer[name] is None) == (name in answer["unknown"]), name
    assert set(answer["unknown"]) == {"cache_hit_rate", "forecast_freshness_sec"}
    assert (answer["kafka_consumer_lag"], answer["outbox_backlog"], answer["dlq_count"]) == (0, 0, 0)


def test_the_share_of_unchanged_answers_is_counted_from_visits(store_url: str) -> None:  # E13
    clock = [utc_now() - timedelta(hours=3)]
    with running(store_url, now=lambda: clock[0]) as headwater:
        source_id = headwater.source()
        clock[0] += timedelta(hours=3)
        for outcome in ("ok", "unchanged", "unchanged", "unchanged", "failed"):
            headwater.publish(source_id, outcome=outcome)
        figures = {one["name"]: one for one in headwater.program().get("/api/health").json()["figures"]}
        assert figures["answers_unchanged"]["value"] == 0.75


def test_on_kafka_what_reaches_no_consumer_is_seen(postgres_url: str) -> None:  # E13
    clock = [utc_now()]
    # Nobody listens there: as far as consumers can tell, the connector is paused.
    nowhere = {
        "HEADWATER_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "HEADWATER_KAFKA_CONNECT_URL": "http://127.0.0.1:1",
    }
    with running(postgres_url, now=lambda: clock[0], **nowhere) as headwater:
        headwater.publish(headwater.source(), *[a_post(str(number)) for number in range(150)])
        clock[0] += timedelta(minutes=5)
        client, parts = headwater.program(), headwater.parts
        answer = client.get("/api/health").json()
        assert answer["status"] == "bad"
        assert answer["outbox_backlog"] >= 150
        assert answer["kafka_consumer_lag"] >= 299
        advice = {one["name"]: one["advice"] for one in answer["figures"] if one["state"] != "ok"}
        assert "headwater kafka check" in advice["outbox_backlog"]
        assert "Kafka Connect at http://127.0.0.1:1 does not answer" in advice["connector"]
        assert 'headwater_outbox_backlog{consumer="search"} 150.0' in client.get("/metrics").text

        for consumer in (*parts.consumers, *parts.consumers):  # twice, because folding publishes events of its own
            consume_all(parts.db, consumer, clock[0])
        answer = client.get("/api/health").json()
        assert (answer["outbox_backlog"], answer["kafka_consumer_lag"]) == (0, 0)
        assert 'headwater_outbox_backlog{consumer="search"} 0.0' in client.get("/metrics").text
