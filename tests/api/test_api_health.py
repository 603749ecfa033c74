"""`/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

from datetime import timedelta

from api.running import Running


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
