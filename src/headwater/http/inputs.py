"""What clients send: the types that routes and forms share."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from headwater.text import printable

MAX_ID = 2**63 - 1
MAX_PAGE = 200
MAX_MARKED = 1000


def _name(text: str) -> str | None:
    return " ".join(printable(text).split()) or None


Id = Annotated[int, Path(ge=1, le=MAX_ID)]
Cursor = Annotated[
    str | None, Query(description="`next_cursor` of the page before; leave it out to start from the first")
]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="how many at most")]
Name = Annotated[str, Field(max_length=300), AfterValidator(_name)]
AnyId = Annotated[int, Field(ge=1, le=MAX_ID)]


class NewSource(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"address": "https://example.org/", "folder": "Science"}})

    address: str = Field(description="a feed's address, or that of a site that has one")
    folder: Name | None = Field(default=None, description="the folder to put it in")
    title: Name | None = Field(default=None, description="your own name for it")
    kind: str | None = Field(
        default=None, max_length=20, description="how to read it, such as `forum` or `news`; null: that is found out"
    )
    settings: dict[str, Any] | None = Field(default=None, description="what its kind wants to know, such as max_pages")


class Arrangement(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"folder": "Markets"}})

    folder: Name | None = Field(default=None, description="the folder to put it in; null for none")
    title: Name | None = Field(default=None, description="your own name for it; null for its own")


class ScheduleFeed(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"feed_id": 12, "force_immediate": True}})

    feed_id: AnyId = Field(description="the source's id")
    force_immediate: bool = Field(default=False, description="visit it now, whatever remains of its interval")


class PostState(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"read": True}})

    read: bool | None = None
    starred: bool | None = None

    def given(self) -> dict[str, bool]:
        """Only what the client wants to change."""
        return {name: on for name, on in (("read", self.read), ("starred", self.starred)) if on is not None}


class MarkedPosts(PostState):
    model_config = ConfigDict(json_schema_extra={"example": {"ids": [4711, 4712], "read": True}})

    ids: list[AnyId] = Field(max_length=MAX_MARKED)
