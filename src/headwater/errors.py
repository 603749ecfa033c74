"""Every error Headwater raises on purpose, as one tree.

    HeadwaterError
    ├── BadInput                 the request is wrong (422)
    │   ├── BadAddress           an address that we cannot or must not use
    │   ├── BadCursor            a page cursor that we did not make
    │   ├── UnknownParameter     a query parameter that the address does not take
    │   ├── BadDocument          an OPML or JSON document that cannot be read
    │   ├── BadSetting           a setting with a wrong name or value
    │   ├── BadConfiguration     a requested run with a wrong field (400)
    │   ├── TooManySources       more than one reader may follow
    │   ├── UnknownModel         a model of machines that the catalogue does not have
    │   ├── NotEnoughCoins       a sale of more coins than there are at that time
    │   └── KeyReused            an idempotency key that was used for another request
    ├── NotSignedIn              no valid session or token (401)
    │   └── SignInRefused        signing in at a provider failed, or nobody here is known by it
    ├── Forbidden                signed in, but not allowed (403)
    │   └── InsufficientScope    the role or the token does not allow this
    ├── TooOften                 more requests or guesses than allowed (429)
    ├── NotFound                 nothing there, or nothing you may see (404)
    ├── AlreadyThere             it exists; adding it again changes nothing (409)
    ├── AlreadyCorrected         a trade that was corrected or cancelled before (409)
    ├── AlreadyUndone            it was undone before; nothing is left to undo (409)
    ├── BeingDecided             somebody else is deciding about the same posts (409)
    ├── NotPossibleNow           something else has to change first (409)
    ├── ChangedMeanwhile         somebody else has changed it since it was read (409)
    ├── UnreadableEvent          an event whose content does not match its kind
    ├── StoreUnavailable         database busy, full or gone (503)
    │   ├── StoreMissing         there is no database yet
    │   ├── SchemaMismatch       the database is older or newer than this program
    │   ├── StoreLost            the database file is gone, or another one is in its place
    │   └── StoreDamaged         the database file has unreadable parts
    ├── KeyUnavailable           the key that encrypts secrets is missing (503)
    ├── LogUnavailable           Kafka or Kafka Connect does not answer (503)
    └── SourceFailure            one source failed; stored and shown, never fatal (502)
        ├── FetchFailed          no usable answer came back
        │   ├── AddressRefused   the guard does not allow this address (422)
        │   ├── AnswerTooLarge   more bytes than allowed
        │   ├── AnswerBroken     cut off, badly compressed, contradictory
        │   ├── TimedOut         the total deadline passed (504)
        │   ├── NameUnknown      the host's name does not resolve
        │   ├── ConnectionFailed nobody answered, or the connection was closed
        │   ├── CertificateBad   TLS could not be verified
        │   ├── TooManyRedirects a loop, or a chain that is too long
        │   ├── RobotsRefused    the site's robots.txt asks programs to stay away
        │   ├── StatusRefused    the server said no (4xx, 5xx)
        │   └── NotAsked         no request was made, for a reason of ours
        │       ├── KeyMissing   a required token was not given
        │       └── NotYet       it has to wait, for example for the next month
        └── ReadFailed           an answer came, but not what was expected
            ├── NotAFeed         not a feed (422)
            ├── NotAnImage       not an image of a kind that is saved
            ├── EmptyAnswer      a good status with nothing in it
            ├── Blocked          a login or bot page instead of the content
            ├── TooDeep          nested or expanded beyond reason
            └── ParserStopped    the parser process exceeded its limits and was stopped

Each class has a `code` (stable, for programs), a `title` (short, for people) and an HTTP `status`. A class without a
status inherits one. The instance says what happened and what to do (`detail`). `docs/reference/errors.md` is generated
from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime


class HeadwaterError(Exception):
    """Anything Headwater raises on purpose. `facts` are values for programs."""

    code = "error"
    title = "Something went wrong"
    status = 500

    def __init_subclass__(cls, *, code: str, title: str, status: int | None = None) -> None:
        cls.code, cls.title = code, title
        if status is not None:
            cls.status = status

    def __init__(self, detail: str = "", **facts: object) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.facts = facts

    def __reduce__(self) -> tuple[object, ...]:
        # Errors are pickled by the parser processes. The default would lose the keyword arguments.
        return (_rebuild, (type(self), self.detail, self.facts))


def _rebuild(kind: type[HeadwaterError], detail: str, facts: dict[str, object]) -> HeadwaterError:
    return kind(detail, **facts)


class BadInput(HeadwaterError, code="bad_input", title="The request cannot be understood", status=422): ...


class BadAddress(BadInput, code="bad_address", title="This address cannot be used"): ...


class BadCursor(BadInput, code="bad_cursor", title="This page cursor is not valid"): ...


class UnknownParameter(BadInput, code="unknown_parameter", title="There is no such parameter"): ...


class BadDocument(BadInput, code="bad_document", title="This document cannot be read"): ...


class BadSetting(BadInput, code="bad_setting", title="A setting is wrong"): ...


class BadConfiguration(BadInput, code="bad_configuration", title="The run is not configured correctly", status=400): ...


class TooManySources(BadInput, code="too_many_sources", title="This is more sources than one reader may follow"): ...


class UnknownModel(BadInput, code="unknown_model", title="The catalogue has no such model"): ...


class NotEnoughCoins(BadInput, code="not_enough_coins", title="There are not enough coins to sell"): ...


class KeyReused(BadInput, code="key_reused", title="This idempotency key was used for another request"): ...


class NotSignedIn(HeadwaterError, code="not_signed_in", title="Sign in first", status=401): ...


class SignInRefused(NotSignedIn, code="sign_in_refused", title="You could not be signed in"): ...


class Forbidden(HeadwaterError, code="forbidden", title="Not allowed", status=403): ...


class InsufficientScope(Forbidden, code="insufficient_scope", title="Your role or token does not allow this"):
    """`facts` has `scope`, the one that is needed."""


class TooOften(HeadwaterError, code="too_often", title="Too many requests", status=429):
    """`facts` has `retry_after`, in seconds."""


class NotFound(HeadwaterError, code="not_found", title="There is nothing here", status=404): ...


class AlreadyThere(HeadwaterError, code="already_there", title="It is already there", status=409): ...


class AlreadyCorrected(HeadwaterError, code="already_corrected", title="It has already been corrected", status=409): ...


class AlreadyUndone(HeadwaterError, code="already_undone", title="It has already been undone", status=409): ...


class BeingDecided(
    HeadwaterError, code="being_decided", title="Another run is deciding about the same posts", status=409
): ...


class NotPossibleNow(
    HeadwaterError, code="not_possible_now", title="Something else has to change first", status=409
): ...


class ChangedMeanwhile(HeadwaterError, code="changed_meanwhile", title="It has changed since you read it", status=409):
    """`facts` has `revision`, the current one."""


class UnreadableEvent(HeadwaterError, code="unreadable_event", title="An event cannot be read"): ...


class StoreUnavailable(
    HeadwaterError, code="store_unavailable", title="The database is not available right now", status=503
): ...


class StoreMissing(StoreUnavailable, code="store_missing", title="There is no store yet"): ...


class SchemaMismatch(
    StoreUnavailable, code="schema_mismatch", title="The database does not have this program's schema"
): ...


class StoreLost(StoreUnavailable, code="store_lost", title="The database file is gone or was replaced"): ...


class StoreDamaged(StoreUnavailable, code="store_damaged", title="The database file is damaged"): ...


class KeyUnavailable(
    HeadwaterError, code="key_unavailable", title="The key that encrypts secrets is not available", status=503
): ...


class LogUnavailable(HeadwaterError, code="log_unavailable", title="Kafka cannot be reached", status=503): ...


class SourceFailure(HeadwaterError, code="source_failure", title="The source failed", status=502): ...


class FetchFailed(SourceFailure, code="fetch_failed", title="No usable answer came back"): ...


class AddressRefused(
    FetchFailed, code="address_refused", title="Headwater may not connect to this address", status=422
): ...


class AnswerTooLarge(FetchFailed, code="answer_too_large", title="The answer is larger than allowed"): ...


class AnswerBroken(FetchFailed, code="answer_broken", title="The answer was cut off or is contradictory"): ...


class TimedOut(FetchFailed, code="timed_out", title="The answer took too long", status=504): ...


class NameUnknown(FetchFailed, code="name_unknown", title="The host name does not resolve"): ...


class ConnectionFailed(FetchFailed, code="connection_failed", title="The server cannot be reached"): ...


class CertificateBad(FetchFailed, code="certificate_bad", title="The server's certificate cannot be verified"): ...


class TooManyRedirects(FetchFailed, code="too_many_redirects", title="The server redirects endlessly"): ...


class RobotsRefused(FetchFailed, code="robots_refused", title="The site asks programs not to read this page"): ...


class StatusRefused(FetchFailed, code="status_refused", title="The server refused"):
    """`facts` has `http_status`, and `retry_after` (seconds) if the server gave one."""


class NotAsked(FetchFailed, code="not_asked", title="No request was sent to the server"): ...


class KeyMissing(NotAsked, code="key_missing", title="A required token was not given"): ...


class NotYet(NotAsked, code="not_yet", title="The request has to wait"):
    """`detail` says what it waits for, `until` when to try again."""

    @property
    def until(self) -> datetime:
        until = self.facts["until"]
        assert isinstance(until, datetime)
        return until


class ReadFailed(SourceFailure, code="read_failed", title="The answer is not what was expected"): ...


class NotAFeed(ReadFailed, code="not_a_feed", title="This is not a feed", status=422): ...


class NotAnImage(ReadFailed, code="not_an_image", title="This is not an image that can be saved"):
    """`facts` has `lasting` if asking again would give the same answer."""


class EmptyAnswer(ReadFailed, code="empty_answer", title="The answer is empty"): ...


class Blocked(
    ReadFailed, code="blocked", title="The server sent a login page or a bot check instead of the content"
): ...


class TooDeep(ReadFailed, code="too_deep", title="The document is nested too deeply or expands too much"): ...


class ParserStopped(ReadFailed, code="parser_stopped", title="Parsing this document exceeded the limits"): ...


def all_errors() -> Iterator[type[HeadwaterError]]:
    """Yields the whole tree, parents first, in the order of declaration."""
    waiting: list[type[HeadwaterError]] = [HeadwaterError]
    while waiting:
        kind = waiting.pop(0)
        yield kind
        waiting[:0] = kind.__subclasses__()
