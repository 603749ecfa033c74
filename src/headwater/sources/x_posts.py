"""Posts of X, from the API's JSON: full text, expanded links, references to other posts, images and videos.

Values of the wrong type are skipped, never converted. A post without a usable id is skipped too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape, unescape
from typing import Any, NamedTuple

from headwater.model import Enclosure, Image, Post, Reference
from headwater.sources.json_values import Json, count, one_line, record, records, text
from headwater.text import clean_html, text_as_html, text_hash
from headwater.urls import safe_link

SITE = "https://x.com"
MAX_NAME = 100
MAX_ALT = 2_000
MAX_MEDIA = 20
EARLIEST = datetime(2006, 3, 21, tzinfo=UTC)  # the first post
TOO_FAR_AHEAD = timedelta(minutes=10)  # a clock may be off by that much
SNOWFLAKES_SINCE = datetime(2010, 11, 4, 1, 42, 54, 657_000, tzinfo=UTC)  # from then on an id contains its time
SMALLEST_SNOWFLAKE = 10**12
REFERENCES = {"retweeted": "repost", "quoted": "quote", "replied_to": "reply"}  # the most telling first
COUNTS = {
    "retweet_count": "reposts",
    "quote_count": "quotes",
    "bookmark_count": "bookmarks",
    "impression_count": "views",
}
_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_HANDLE = re.compile(r"\w{1,15}", re.ASCII)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z]{2,4})?", re.ASCII)
_NO_LANGUAGE = frozenset({"und", "zxx", "art", "qam", "qct", "qht", "qme", "qst"})
_SHORT_LINK = re.compile(r"https?://t\.co/\w{1,40}", re.ASCII)
_TO_MEDIA = re.compile(r"https?://(?:x|twitter|pic\.x|pic\.twitter)\.com/.*/(?:photo|video)/\d+", re.ASCII)
_TO_POST = re.compile(r"https?://(?:mobile\.|www\.)?(?:x|twitter)\.com/\w+/status/(\d+)(?:\?.*)?", re.ASCII)


class Included(NamedTuple):
    """What an answer contains besides its posts: authors, referenced posts, media, and why a post is unavailable."""

    users: Mapping[str, Json]
    tweets: Mapping[str, Json]
    media: Mapping[str, Json]
    unavailable: Mapping[str, str]


def is_id(id: str) -> bool:
    return _ID.fullmatch(id) is not None


def created_at_of(id: str) -> datetime | None:
    """Returns when the post with this id was made; None if the id is too old to contain its time."""
    number = int(id)
    return SNOWFLAKES_SINCE + timedelta(milliseconds=number >> 22) if number >= SMALLEST_SNOWFLAKE else None


def posts_in(listed: Sequence[Json], document: Json, received_at: datetime) -> list[Post]:
    """Returns the listed posts, each once and in its newest version."""
    included = _included(document)
    newest: dict[str, Json] = {}
    for tweet in listed:
        id = _id(tweet)
        if id is None:
            continue
        identity = _identity(tweet)
        if identity not in newest or int(id) > int(newest[identity]["id"]):
            newest[identity] = tweet
    return [_post(identity, tweet, included, received_at) for identity, tweet in newest.items()]


def name_of_account(document: Json, handle: str) -> str:
    """Returns what the account calls itself, if the answer says it."""
    users = _included(document).users.values()
    return next((full_name(user) for user in users if _handle(user).lower() == handle.lower()), "")


def full_name(user: Json) -> str:
    handle, name = _handle(user), one_line(text(user, "name"), MAX_NAME)
    return f"{name} (@{handle})" if name and handle else name or (f"@{handle}" if handle else "")


def why_unavailable(document: Json) -> str | None:
    """Returns why X sent nothing at all: protected, suspended, withheld or deleted; None if it does not say."""
    errors = document.get("errors")
    return next((_reason(error) for error in records(errors) if "/problems/" in text(error, "type")), None)


def _reason(error: Json) -> str:
    words = f"{text(error, 'title')} {text(error, 'detail')}".lower()
    if "suspended" in words:
        return "suspended"
    if "withheld" in words:
        return "withheld"
    return "protected" if text(error, "type").endswith("not-authorized-for-resource") else "deleted"


def _included(document: Json) -> Included:
    given = document.get("includes")
    includes = given if isinstance(given, dict) else {}
    named = {
        name: {key: one for one in records(includes.get(name)) if (key := text(one, identity))}
        for name, identity in (("users", "id"), ("tweets", "id"), ("media", "media_key"))
    }
    unavailable = {
        id: _reason(error)
        for error in records(document.get("errors"))
        if (id := text(error, "resource_id") or text(error, "value"))
    }
    return Included(named["users"], named["tweets"], named["media"], unavailable)


def _post(identity: str, tweet: Json, included: Included, received_at: datetime) -> Post:
    id = text(tweet, "id")
    references = _references(tweet)
    original = included.tweets.get(references["repost"]) if "repost" in references else None
    shown = original or tweet
    content = _content(shown, included)
    user = included.users.get(text(tweet, "author_id"), {})
    made_at = _made_at(identity, tweet, received_at)
    counts = record(shown, "public_metrics")
    return Post(
        source_post_id=identity,
        url=f"{SITE}/{_handle(user) or 'i'}/status/{id}",
        title="",
        content=content,
        author=full_name(user) or None,
        created_at=made_at or received_at,
        text_hash=text_hash("", content),
        dated=made_at is not None,
        updated_at=_moment(tweet, received_at) if identity != id else None,
        lang=_language(tweet),
        score=count(counts, "like_count"),
        num_comments=count(counts, "reply_count"),
        reference=_reference(references, included),
        enclosures=tuple(_videos(shown, included)),
        extra=_extra(tweet, references, original, included, counts),
        images=tuple(_images(shown, included)),
        thread=_named("reply", references, included),
    )


def _id(tweet: Json) -> str | None:
    id = text(tweet, "id")
    return id if is_id(id) else None


def _identity(tweet: Json) -> str:
    """Returns the id of a post's first version. Each edit has an id of its own."""
    return _history(tweet)[0]


def _history(tweet: Json) -> list[str]:
    id, given = text(tweet, "id"), tweet.get("edit_history_tweet_ids")
    history = [one for one in given if isinstance(one, str) and is_id(one)] if isinstance(given, list) else []
    return sorted(history, key=int) if id in history else [id]


def _references(tweet: Json) -> dict[str, str]:
    """Returns the posts that a post refers to, by type, the most telling first."""
    found = {
        REFERENCES[kind]: id
        for one in records(tweet.get("referenced_tweets"))
        if (kind := text(one, "type")) in REFERENCES and is_id(id := text(one, "id"))
    }
    return {kind: found[kind] for kind in REFERENCES.values() if kind in found}


def _reference(references: Mapping[str, str], included: Included) -> Reference | None:
    for kind in references:
        return Reference(kind, _named(kind, references, included) or "")
    return None


def _named(kind: str, references: Mapping[str, str], included: Included) -> str | None:
    """Returns the post that a post refers to in this way, by the id of its first version."""
    id = references.get(kind)
    other = included.tweets.get(id) if id else None
    return _identity(other) if other else id


def _content(tweet: Json, included: Included) -> str:
    """Returns the text of a post, the post it quotes and its images, as clean HTML."""
    quoted_id = _references(tweet).get("quote")
    quoted = included.tweets.get(quoted_id) if quoted_id else None
    html = _text_html(tweet, quoted_id if quoted else None)
    if quoted:
        user = included.users.get(text(quoted, "author_id"), {})
        link = f"{SITE}/{_handle(user) or 'i'}/status/{quoted_id}"
        by = f'<p><a href="{link}">{escape(full_name(user) or "X")}</a></p>'
        html += f"\n<blockquote>{_text_html(quoted, None)}{by}</blockquote>"
    for image in _images(tweet, included):
        html += f'\n<p><img src="{escape(image.url)}" alt="{escape(image.alt)}"></p>'
    return clean_html(html, None).strip()


def _text_html(tweet: Json, quoted_id: str | None) -> str:
    """Returns the text, with X's short links expanded. Links to what is shown anyway are left out."""
    note = record(tweet, "note_tweet")
    full = note if text(note, "text") else tweet
    targets = _targets(full, quoted_id)
    words, html, at = text(full, "text"), "", 0
    for found in _SHORT_LINK.finditer(words):
        html += _as_html(words[at : found.start()]) + _link(found[0], targets)
        at = found.end()
    return (html + _as_html(words[at:])).strip()


def _as_html(words: str) -> str:
    return text_as_html(unescape(words))  # X escapes & and brackets as HTML does


def _link(short: str, targets: Mapping[str, tuple[str, str] | None]) -> str:
    target = targets.get(short, (short, short))
    if target is None:
        return ""
    link, words = target
    return f'<a href="{escape(link)}">{escape(words)}</a>'


def _targets(full: Json, quoted_id: str | None) -> dict[str, tuple[str, str] | None]:
    """Returns where each short link leads, and its text; None if the post shows the target itself."""
    targets: dict[str, tuple[str, str] | None] = {}
    for url in records(record(full, "entities").get("urls")):
        link = safe_link(text(url, "unwound_url"), None) or safe_link(text(url, "expanded_url"), None)
        if not link:
            continue
        post = _TO_POST.fullmatch(link)
        if text(url, "media_key") or _TO_MEDIA.fullmatch(link) or (post and post[1] == quoted_id):
            targets[text(url, "url")] = None
        else:
            targets[text(url, "url")] = (link, one_line(text(url, "display_url"), MAX_NAME) or link)
    return targets


def _media(tweet: Json, included: Included) -> Iterable[Json]:
    keys = record(tweet, "attachments").get("media_keys")
    for key in keys[:MAX_MEDIA] if isinstance(keys, list) else ():
        if isinstance(key, str) and key in included.media:
            yield included.media[key]


def _images(tweet: Json, included: Included) -> Iterable[Image]:
    for media in _media(tweet, included):
        link = safe_link(text(media, "url") or text(media, "preview_image_url"), None)
        if link:
            yield Image(link, one_line(text(media, "alt_text"), MAX_ALT))


def _videos(tweet: Json, included: Included) -> Iterable[Enclosure]:
    for media in _media(tweet, included):
        variants = [one for one in records(media.get("variants")) if text(one, "content_type") == "video/mp4"]
        best = max(variants, key=lambda one: count(one, "bit_rate") or 0, default=None)
        if best and (link := safe_link(text(best, "url"), None)):
            yield Enclosure(link, "video/mp4")


def _extra(
    tweet: Json, references: Mapping[str, str], original: Json | None, included: Included, counts: Json
) -> dict[str, Any]:
    facts: dict[str, Any] = {ours: count(counts, theirs) for theirs, ours in COUNTS.items()}
    facts["edits"] = len(_history(tweet)) - 1
    facts["sensitive"] = tweet.get("possibly_sensitive") is True
    if original:
        facts["repost_of"] = full_name(included.users.get(text(original, "author_id"), {}))
    if "reply" in references and len(references) > 1:
        facts["replies_to"] = references["reply"]
    facts["unavailable"] = next(
        (included.unavailable[id] for id in references.values() if id in included.unavailable), ""
    )
    if "withheld" in tweet:
        facts["withheld"] = _countries(record(tweet, "withheld")) or "everywhere"
    return {name: value for name, value in facts.items() if value}


def _countries(withheld: Json) -> str:
    given = withheld.get("country_codes")
    return " ".join(one_line(one, 2) for one in given[:300] if isinstance(one, str)) if isinstance(given, list) else ""


def _made_at(identity: str, tweet: Json, received_at: datetime) -> datetime | None:
    """Returns when the first version was made.

    Its id says so; the date that X gives for an edited post is that of the edit.
    """
    if identity == text(tweet, "id"):
        return _moment(tweet, received_at)
    made_at = created_at_of(identity)
    return made_at if made_at and made_at <= received_at + TOO_FAR_AHEAD else None


def _moment(tweet: Json, received_at: datetime) -> datetime | None:
    """Returns a time that can be true."""
    try:
        moment = datetime.fromisoformat(text(tweet, "created_at"))
    except ValueError:
        return None
    if moment.tzinfo is None or not EARLIEST <= moment <= received_at + TOO_FAR_AHEAD:
        return None
    return moment.astimezone(UTC)


def _language(tweet: Json) -> str | None:
    lang = text(tweet, "lang")
    return lang if _LANGUAGE.fullmatch(lang) and lang not in _NO_LANGUAGE else None


def _handle(user: Json) -> str:
    handle = text(user, "username")
    return handle if _HANDLE.fullmatch(handle) else ""
