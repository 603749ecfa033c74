"""What answers look like, by the name of their schema: shown in the OpenAPI document and the reference."""

from __future__ import annotations

from typing import Any

_SOURCE: dict[str, Any] = {
    "id": 12,
    "kind": "rss",
    "address": "https://example.org/feed.xml",
    "title": "Example Journal",
    "folder": "Science",
    "site_url": "https://example.org/",
    "status": "ok",
    "active": True,
    "created_at": "2026-01-05T08:00:00Z",
    "last_crawled_at": "2026-01-07T09:30:00Z",
    "next_check_at": "2026-01-07T10:00:00Z",
    "checking": False,
    "waits_for": None,
    "newest_post_at": "2026-01-07T09:12:00Z",
    "interval_seconds": 1800,
    "consecutive_failures": 0,
    "failing_since": None,
    "last_error_code": None,
    "last_error": None,
    "truncated": False,
    "note": "",
    "gap_at": None,
}
_VISIT: dict[str, Any] = {
    "started_at": "2026-01-07T09:30:00Z",
    "seconds": 0.21,
    "outcome": "ok",
    "http_status": 200,
    "bytes": 18230,
    "new": 2,
    "updated": 0,
    "duplicates": 18,
    "truncated": False,
    "gap": False,
    "error": None,
}
_POST: dict[str, Any] = {
    "id": 4711,
    "source_id": 12,
    "source": "Example Journal",
    "url": "https://example.org/rivers",
    "title": "Where rivers begin",
    "content": "<p>Most rivers start as a spring.</p>",
    "author": "A. Writer",
    "published_at": "2026-01-07T09:12:00Z",
    "fetched_at": "2026-01-07T09:30:01Z",
    "version": 1,
    "lang": "en",
    "score": None,
    "num_comments": None,
    "enclosures": [],
    "read": False,
    "starred": True,
}
_STORY: dict[str, Any] = {
    "story_id": "4711",
    "title": "Where rivers begin",
    "url": "https://example.org/rivers",
    "source": "Example Journal",
    "published_at": "2026-01-07T09:12:00Z",
    "members": [
        {
            "post_id": 4711,
            "source_id": 12,
            "source": "Example Journal",
            "url": "https://example.org/rivers",
            "title": "Where rivers begin",
            "published_at": "2026-01-07T09:12:00Z",
            "read": False,
            "rule": "first",
            "score": 1.0,
            "why": "",
            "repeat_of": None,
        }
    ],
}
_MEMBER: dict[str, Any] = {
    "post_id": 4719,
    "source_id": 14,
    "source": "Example Wire",
    "url": "https://wire.example/rivers",
    "title": "BREAKING: Where rivers begin",
    "published_at": "2026-01-07T09:20:00Z",
    "read": False,
    "rule": "exact",
    "score": 1.0,
    "why": "same text but for the label breaking",
    "repeat_of": 4711,
}
_JOINED: dict[str, Any] = {
    "post_id": 4719,
    "story_id": 4711,
    "repeat_of": 4711,
    "rule": "exact",
    "score": 1.0,
    "why": "same text but for the label breaking",
}
_PAST: dict[str, Any] = {
    "at": "2026-01-07T09:30:02Z",
    "action": "joined",
    "post_id": 4719,
    "rule": "exact",
    "score": 1.0,
    "why": "same text but for the label breaking",
}
_REFUSED = {"address": "ftp://example.org/", "reason": "Only http:// and https:// addresses can be used."}

EXAMPLES: dict[str, dict[str, Any]] = {
    "SourceJson": _SOURCE,
    "SourceDetailJson": {**_SOURCE, "pushed_since": "2026-01-06T07:00:00Z", "posts": 120, "visits": [_VISIT]},
    "VisitJson": _VISIT,
    "PostJson": _POST,
    "StoryJson": _STORY,
    "MemberJson": _MEMBER,
    "DecisionJson": _JOINED,
    "Run": {
        "task_id": "0199f1de-7a10-7c3e-9d0a-5f3a1c2b4d6e",
        "status": "completed",
        "decided": 2,
        "already_decided": 0,
        "joined": [_JOINED],
    },
    "GroupJson": {
        "group_id": 4711,
        "representative": 4711,
        "members": [*_STORY["members"], _MEMBER],
        "history": [_PAST],
    },
    "Done": {"success": True, "post_ids": [4711, 4719]},
    "FoldingJson": {"level": "stories", "threshold": 0.0},
    "Scheduled": {"task_id": "visit-12-1767778200", "status": "queued", "delay_seconds": 540},
    "ImportReport": {"added": 12, "already": 3, "refused": [_REFUSED]},
}
