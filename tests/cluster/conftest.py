"""Celery workers and beats in processes of their own, on PostgreSQL and Redis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater import wire
from headwater.model import Reader
from headwater.settings import load
from headwater.wire import Parts
from support.cluster import Cluster
from support.services import fresh_postgres_database, service_url
from support.web import ALLOW_LOOPBACK


@pytest.fixture
def environ(postgres_schema: str, redis_url: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings of a Celery deployment on this machine."""
    with fresh_postgres_database(service_url("postgres"), postgres_schema) as url:
        yield {
            **ALLOW_LOOPBACK,
            "HEADWATER_DATABASE_URL": url,
            "HEADWATER_DATA_DIR": str(tmp_path / "data"),
            "HEADWATER_HOST_GAP_SECONDS": "0",
            "HEADWATER_PARSER_PROCESSES": "1",
            "CELERY_BROKER_URL": redis_url,
            "CELERY_WORKER_COUNT": "1",
        }


@pytest.fixture
def owner(parts: Parts) -> Reader:
    return wire.prepare_store(parts)


@pytest.fixture
def parts(environ: dict[str, str]) -> Iterator[Parts]:
    opened = wire.open_parts(load(environ))
    yield opened
    opened.close()


@pytest.fixture
def cluster(environ: dict[str, str], tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(environ, tmp_path / "logs") as made:
        yield made
