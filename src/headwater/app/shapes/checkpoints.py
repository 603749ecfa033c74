"""How checkpoints and the statistics of lists are written as JSON, by the API and by the command line."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from headwater.app.shapes import Time, iso, iso_or_none
from headwater.store.visits.checkpoints import CheckpointRow
from headwater.store.visits.statistics import Statistics


class CheckpointJson(TypedDict):
    """How far the crawl of a list got."""

    source_id: int
    site: str
    board: str
    status: Annotated[str, Field(description="running, completed or error")]
    error: str | None
    current_page: Annotated[int, Field(description="pages of the list that this crawl has read")]
    page_url: Annotated[str | None, Field(description="the page of the list that comes next; null: none")]
    last_thread_id: Annotated[str | None, Field(description="the item that was read last")]
    last_thread_url: str | None
    stats: Annotated[dict[str, int], Field(description="what this crawl did")]
    min_id: str | None
    max_id: str | None
    started_at: Annotated[Time, Field(description="when this crawl began")]
    completed_at: Annotated[Time | None, Field(description="when the last complete crawl ended")]
    created_at: Time
    updated_at: Time


class CheckpointsJson(TypedDict):
    items: list[CheckpointJson]


class BoardJson(TypedDict):
    """What the list of a source has brought so far."""

    source_id: int
    kind: str
    title: str
    site: str
    board: str
    status: Annotated[str, Field(description="of its crawl: running, completed or error")]
    done: Annotated[int, Field(description="items that were read")]
    failed: int
    waiting: Annotated[int, Field(description="items that are named and not read yet")]
    posts: int
    images: Annotated[dict[str, int], Field(description="pictures that its posts show, by their state")]


class StatisticsJson(TypedDict):
    """What all lists that you follow have brought, counted in the store."""

    threads: Annotated[int, Field(description="of forums, read")]
    articles: Annotated[int, Field(description="of news sites, read")]
    images: Annotated[dict[str, int], Field(description="pictures of all these lists, by their state")]
    succeeded: int
    failed: int
    boards: list[BoardJson]


_CHECKPOINT: dict[str, Any] = {
    "source_id": 12,
    "site": "https://forum.example",
    "board": "/c/mining",
    "status": "running",
    "error": None,
    "current_page": 3,
    "page_url": "https://forum.example/c/mining?page=4",
    "last_thread_id": "8231",
    "last_thread_url": "https://forum.example/t/8231",
    "stats": {"list_pages": 3, "item_pages": 71, "done": 58, "failed": 1, "new": 640, "images": 12},
    "min_id": "7902",
    "max_id": "8240",
    "started_at": "2026-01-07T09:00:00Z",
    "completed_at": "2026-01-06T21:14:00Z",
    "created_at": "2026-01-02T08:00:00Z",
    "updated_at": "2026-01-07T09:04:12Z",
}
_BOARD: dict[str, Any] = {
    "source_id": 12,
    "kind": "forum",
    "title": "Mining",
    "site": "https://forum.example",
    "board": "/c/mining",
    "status": "running",
    "done": 2310,
    "failed": 4,
    "waiting": 12,
    "posts": 30122,
    "images": {"waiting": 3, "saved": 840, "failed": 11},
}
EXAMPLES = {
    "CheckpointJson": _CHECKPOINT,
    "CheckpointsJson": {"items": [_CHECKPOINT]},
    "StatisticsJson": {
        "threads": 2310,
        "articles": 0,
        "images": {"waiting": 3, "saved": 840, "failed": 11},
        "succeeded": 2310,
        "failed": 4,
        "boards": [_BOARD],
    },
}


def checkpoint_json(row: CheckpointRow) -> CheckpointJson:
    return {
        "source_id": row.source_id,
        "site": row.site,
        "board": row.board,
        "status": row.status,
        "error": row.error,
        "current_page": row.current_page,
        "page_url": row.page_url,
        "last_thread_id": row.last_thread_id,
        "last_thread_url": row.last_thread_url,
        "stats": dict(row.stats),
        "min_id": row.min_id,
        "max_id": row.max_id,
        "started_at": iso(row.started_at),
        "completed_at": iso_or_none(row.completed_at),
        "created_at": iso(row.created_at),
        "updated_at": iso(row.updated_at),
    }


def statistics_json(found: Statistics) -> StatisticsJson:
    boards: list[BoardJson] = [BoardJson(**board._asdict()) for board in found.boards]  # type: ignore[typeddict-item]
    return {
        "threads": found.total("forum"),
        "articles": found.total("news"),
        "images": found.images,
        "succeeded": found.succeeded,
        "failed": found.failed,
        "boards": boards,
    }
