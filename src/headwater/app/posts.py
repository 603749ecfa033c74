"""Posts and the stream: reading, searching, marking, what a post said before, and its images."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import orjson
from msgspec import Raw
from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app.shapes import Example, Time, iso, shaped
from headwater.coordination.cache import Cache, CachedKind
from headwater.errors import BadInput, NotFound
from headwater.model import Reader
from headwater.store import images, sources
from headwater.store.db import Database
from headwater.store.fleet import mentions
from headwater.store.images import ImageRecord, SourceImages, files, queue
from headwater.store.images import address_of as address_of
from headwater.store.people import audit
from headwater.store.posts import stream, threads
from headwater.store.posts.stream import Filter, Marks, PostVersion, Story, StreamPosition, StreamPost
from headwater.store.sources import WatchedSource

EXPORTED_AT_ONCE = 500
REPLIES = 50  # of a thread that are shown at once
IMAGE_STATES = images.STATES
# What shows in them and is no event may be a minute old: scores, numbers of comments, and the names of sources.
STREAM: CachedKind[list[Story]] = CachedKind("stream_page", list[Story], fresh_for=15, stale_for=45)
STREAM_JSON, POSTS_JSON = (CachedKind[Raw](name, Raw, fresh_for=15, stale_for=45) for name in ("stream", "posts"))
T = TypeVar("T")
_HASH = "9f2c4e7b1a6d8035c9e1f4a7b2d6c8e0134579bdf02468ace13579bdf02468ac"


class StreamView(NamedTuple):
    """A page of the stream, with the folders, and the source if it is limited to one."""

    stories: list[Story]
    folders: list[str]
    source: WatchedSource | None
    follows_nothing: bool


class ThreadView(NamedTuple):
    """A page of the replies of a thread, the oldest first, with its first post and how many replies there are."""

    first: StreamPost
    known: int
    replies: list[StreamPost]


class PostView(NamedTuple):
    """A post in full, with its earlier versions, how many more are not kept, its images, and its thread."""

    post: StreamPost
    past: Sequence[PostVersion]
    thinned: int
    images: list[ImageRecord]
    thread: ThreadView | None = None


def read_stream(
    conn: Connection, reader: Reader, wanted: Filter, *, after: StreamPosition | None = None, limit: int
) -> list[Story]:
    """Returns the next stories, the newest first."""
    return stream.page(conn, reader, wanted, after=after, limit=limit)


async def stream_page(
    db: Database, cache: Cache, reader: Reader, wanted: Filter, *, after: StreamPosition | None = None, limit: int
) -> list[Story]:
    """Returns the next stories, the newest first. The first page comes from the cache where it can."""

    async def read() -> list[Story]:
        return await db.read(read_stream, reader, wanted, after=after, limit=limit)

    return await _cached(db, cache, STREAM, read, reader, wanted, after, limit)


async def page_as_json(
    db: Database,
    cache: Cache,
    kind: CachedKind[Raw],
    shape: Callable[[list[Any]], object],
    reader: Reader,
    wanted: Filter,
    *,
    after: StreamPosition | None = None,
    limit: int,
) -> bytes:
    """Returns a page of stories or posts as JSON, made by `shape`. The first page comes from the cache where it can."""
    rows = read_stream if kind is STREAM_JSON else page

    async def read() -> Raw:
        return Raw(orjson.dumps(shape(await db.read(rows, reader, wanted, after=after, limit=limit))))

    found: Raw = await _cached(db, cache, kind, read, reader, wanted, after, limit)
    return bytes(found)


async def _cached(
    db: Database,
    cache: Cache,
    kind: CachedKind[T],
    read: Callable[[], Coroutine[Any, Any, T]],
    reader: Reader,
    wanted: Filter,
    after: StreamPosition | None,
    limit: int,
) -> T:
    if after is not None or wanted.is_listed:
        return await read()
    version = await db.read(stream.version, reader.tenant_id, reader.user_id)
    filter = blake2b(repr((wanted, limit)).encode(), digest_size=8).hexdigest()
    key = f"{kind.name}:{reader.tenant_id}:{reader.user_id}:{filter}"
    return (await cache.get(kind, key, read, version=version)).value


def owns_something(conn: Connection, reader: Reader) -> bool:
    """Whether the reader has something that posts can name. If not, no story has signals."""
    return mentions.owns(conn, reader)


def with_signals(conn: Connection, reader: Reader, stories: Sequence[Story]) -> list[Story]:
    """Returns stories with what they name of what the reader has."""
    return stream.with_signals(conn, reader, stories)


def stream_view(
    conn: Connection, reader: Reader, now: datetime, wanted: Filter, stories: list[Story], *, signals: bool = False
) -> StreamView:
    """Returns what a page shows around these stories, and in them, if `signals`, what they name of the reader's."""
    if signals:
        stories = stream.with_signals(conn, reader, stories)
    follows_nothing = not stories and not sources.watched_after(conn, reader, now, after=None, limit=1)
    source = sources.watched_one(conn, reader, wanted.source_id, now) if wanted.source_id else None
    return StreamView(stories, stream.folders(conn, reader), source, follows_nothing)


def page(
    conn: Connection, reader: Reader, wanted: Filter, *, after: StreamPosition | None = None, limit: int
) -> list[StreamPost]:
    """Returns the next posts, each by itself, the newest first."""
    return stream.posts_page(conn, reader, wanted, after=after, limit=limit)


def export(conn: Connection, reader: Reader) -> Iterator[PostJson]:
    """Returns every post that the reader may see, with what the reader did with it, the newest first."""
    after = None
    while found := page(conn, reader, Filter(), after=after, limit=EXPORTED_AT_ONCE):
        yield from (shaped(PostJson, one) for one in found)
        after = StreamPosition(found[-1].created_at, found[-1].id)


def find_words(conn: Connection, reader: Reader, words: str, *, limit: int) -> list[StreamPost]:
    """Returns posts that have all these words, the newest first."""
    return page(conn, reader, Filter(words=words), limit=limit)


def one(conn: Connection, reader: Reader, post_id: int) -> StreamPost:
    found = stream.one_post(conn, reader, post_id)
    if found is None:
        raise NotFound(f"There is no post {post_id}, or you do not follow its source any more.")
    return found


def view(conn: Connection, reader: Reader, post_id: int) -> PostView:
    post = one(conn, reader, post_id)
    found = stream.versions(conn, reader, post_id) if post.version > 1 else []
    return PostView(post, found[1:], thinned(found), images.of_post(conn, post_id))


def view_with_thread(
    conn: Connection, reader: Reader, post_id: int, *, after: StreamPosition | None = None, limit: int = REPLIES
) -> PostView:
    """Returns a post in full, and a page of the replies of the thread that it is in."""
    found = view(conn, reader, post_id)
    thread = threads.thread_of(conn, post_id)
    if thread is None or not thread.replies:
        return found
    first = found.post if thread.first_id == post_id else one(conn, reader, thread.first_id)
    replies = stream.replies(conn, reader, thread.first_id, after=after, limit=limit)
    return found._replace(thread=ThreadView(first, thread.replies, replies))


def replies(
    conn: Connection, reader: Reader, post_id: int, *, after: StreamPosition | None = None, limit: int = REPLIES
) -> list[StreamPost]:
    """Returns the next replies of the thread that a post is in, the oldest first."""
    one(conn, reader, post_id)
    thread = threads.thread_of(conn, post_id)
    return stream.replies(conn, reader, thread.first_id, after=after, limit=limit) if thread else []


def mark(conn: Connection, reader: Reader, ids: Sequence[int], now: datetime, marks: Marks) -> int:
    """Marks posts as read or starred, or takes the mark away. Returns how many of them the reader can see."""
    marked = stream.mark_posts(conn, reader, ids, now, marks)
    state = {"read": marks.read, "starred": marks.starred}
    done = ", ".join(name if on else f"not {name}" for name, on in state.items() if on is not None)
    if marked and done:
        audit.record(conn, reader, "post.mark", ids[0] if len(ids) == 1 else None, f"{done}: {marked} posts")
    return marked


def mark_one(conn: Connection, reader: Reader, post_id: int, now: datetime, marks: Marks) -> StreamPost:
    """Marks a post and returns it as it is now."""
    mark(conn, reader, [post_id], now, marks)
    return one(conn, reader, post_id)


class History(NamedTuple):
    """The texts of a post, the newest first. `thinned` is how many of them were deleted because there were too many."""

    versions: Sequence[PostVersion]
    revision: int
    thinned: int


def versions(conn: Connection, reader: Reader, post_id: int, at: str | None = None) -> History:
    """Returns the texts of a post, or only the one that it had at a time."""
    found = stream.versions(conn, reader, post_id)
    if not found:
        raise NotFound(f"There is no post {post_id}.")
    history = History(found, stream.revision(conn, post_id), thinned(found))
    if at is None:
        return history
    time = time_named(at)
    version = stream.version_at(found, time)
    if version is not None:
        return history._replace(versions=[version])
    if time >= found[-1].valid_from:
        raise NotFound(f"What the post {post_id} said then is not kept: {history.thinned} of its texts were deleted.")
    raise NotFound(f"The post {post_id} was not known then. It was first seen at {iso(found[-1].valid_from)}.")


def thinned(found: Sequence[PostVersion]) -> int:
    """Returns how many texts are missing among these, which are all that are kept. Pure."""
    return found[0].version - len(found) if found else 0


def time_named(text: str) -> datetime:
    """Reads a time in ISO 8601, UTC where no zone is given. A date alone is the end of that day."""
    text = text.strip()
    try:
        return datetime.combine(date.fromisoformat(text), time.max, UTC)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{text} is not a time. Write 2026-01-07, or 2026-01-07T09:00.") from error


def images_of(conn: Connection, reader: Reader, post_id: int) -> list[ImageRecord]:
    """Returns the images of a post, in the order in which it shows them."""
    one(conn, reader, post_id)
    return images.of_post(conn, post_id)


def count_images(conn: Connection) -> ImageCountsJson:
    """Counts the images of the whole instance."""
    return _counted(images.counts(conn), images.total_bytes(conn))


def count_images_seen(conn: Connection, reader: Reader) -> ImageCountsJson:
    """Counts the images of what the reader follows."""
    return _counted(images.counts_seen(conn, reader), images.bytes_seen(conn, reader))


def _counted(found: Mapping[str, int], size: int) -> ImageCountsJson:
    return {
        "waiting": found["waiting"],
        "saved": found["saved"],
        "failed": found["failed"],
        "skipped": found["skipped"],
        "bytes": size,
    }


def image_words(counts: Mapping[str, int], *, downloading: bool) -> dict[str, int]:
    """Returns counts of images by what a person calls their state. Without downloads, no image waits for one."""
    return {"not downloaded" if name == "waiting" and not downloading else name: n for name, n in counts.items()}


def count_images_by_source(conn: Connection) -> list[SourceImages]:
    return images.counts_by_source(conn)


def settled_images(conn: Connection, state: str, limit: int) -> list[ImageRecord]:
    """Returns images that failed or were skipped, the newest first."""
    return images.in_state(conn, state, limit)


def retry_images(conn: Connection, now: datetime) -> int:
    """Has all failed images tried again. Returns how many."""
    audit.record(conn, None, "images.retry")
    return queue.retry_failed(conn, now)


def find_image(conn: Connection, reader: Reader, content_hash: str) -> tuple[str, str]:
    """Returns the path and the type of an image, if a source that the reader follows shows it."""
    found = images.file_of(conn, reader, content_hash)
    if found is None:
        raise NotFound("There is no such image, or you follow no source that shows it.")
    return found


def load_image(folder: Path, path: str) -> bytes:
    """Reads the file of an image."""
    content = files.load(folder, path)
    if content is None:
        raise NotFound("The file of this image is missing. It will be downloaded again.")
    return content


class PostJson(TypedDict):
    """What a source published, and what you did with it. `content` is safe HTML."""

    id: Annotated[int, Example(4711)]
    source_id: Annotated[int, Example(12)]
    source: Annotated[str, Example("Example Journal")]
    url: Annotated[str | None, Example("https://example.org/rivers")]
    title: Annotated[str, Example("Where rivers begin")]
    content: Annotated[str, Example("<p>Most rivers start as a spring.</p>")]
    author: Annotated[str | None, Example("A. Writer")]
    published_at: Annotated[Time, Example("2026-01-07T09:12:00Z", of="created_at")]
    fetched_at: Annotated[Time, Example("2026-01-07T09:30:01Z")]
    version: Annotated[int, Example(1, "1 for the first text, one more for each edit")]
    lang: Annotated[str | None, Example("en")]
    score: Annotated[int | None, Example(None)]
    num_comments: Annotated[int | None, Example(None)]
    enclosures: Annotated[list[dict[str, Any]], Example([], of=lambda post: post.extra.get("enclosures", []))]
    read: Annotated[bool, Example(False)]
    starred: Annotated[bool, Example(True)]


class Marked(TypedDict):
    marked: Annotated[int, Example(2)]


class VersionJson(TypedDict):
    """A text of a post, and when it was the post's text. `content` is safe HTML."""

    version: Annotated[int, Example(1, "1 for the first text, one more for each edit")]
    url: Annotated[str | None, Example("https://example.org/rivers")]
    title: Annotated[str, Example("Where rivers begin")]
    content: Annotated[str, Example("<p>Most rivers start as a spring.</p>")]
    author: Annotated[str | None, Example("A. Writer")]
    valid_from: Annotated[Time, Example("2026-01-07T09:30:01Z", "when it was first seen")]
    valid_to: Annotated[Time | None, Example(None, "when the next one was first seen; null: it is the present one")]


class VersionsJson(TypedDict):
    """The texts of a post, the newest first."""

    post_id: Annotated[int, Example(4711)]
    revision: Annotated[int, Example(3, "1, and one more for each change of text, score or number of comments")]
    thinned: Annotated[int, Example(0, "how many texts were deleted because there were too many")]
    versions: list[VersionJson]


class ImageJson(TypedDict):
    """An image, and what became of it."""

    id: Annotated[int, Example(31)]
    url: Annotated[str, Example("https://example.org/spring.jpg")]
    alt: Annotated[str, Example("The spring", "what the post says about it in words")]
    state: Annotated[str, Example("saved", "waiting, saved, failed or skipped")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:01Z")]
    attempts: Annotated[int, Example(1)]
    tried_at: Annotated[Time | None, Example("2026-01-07T09:30:03Z")]
    error_code: Annotated[str | None, Example(None)]
    error: Annotated[str | None, Example(None, "why it is not saved")]
    saved_at: Annotated[Time | None, Example("2026-01-07T09:30:03Z")]
    content_hash: Annotated[str | None, Example(_HASH, "SHA-256 of its content; its file is /images/{content_hash}")]
    path: Annotated[
        str | None,
        Example(f"{_HASH[:2]}/{_HASH[2:]}.jpg", "where its file is, below the folder `images` of the data folder"),
    ]
    type: Annotated[str | None, Example("image/jpeg", "by its first bytes, not by what its server said")]
    size: Annotated[int | None, Example(48211, "in bytes")]
    width: Annotated[int | None, Example(1024)]
    height: Annotated[int | None, Example(683)]
    metadata: Annotated[dict[str, str], Example({"declared_type": "image/jpeg"}, "what its server said about it")]


class ImagesJson(TypedDict):
    """The images of a post, in the order in which it shows them."""

    post_id: Annotated[int, Example(4711)]
    images: list[ImageJson]


class ImageCountsJson(TypedDict):
    """How many images there are, by state, and how much their files take, each content once."""

    waiting: Annotated[int, Example(3)]
    saved: Annotated[int, Example(120)]
    failed: Annotated[int, Example(2)]
    skipped: Annotated[int, Example(5)]
    bytes: Annotated[int, Example(5120331)]
