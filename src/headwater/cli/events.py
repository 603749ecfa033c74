"""`headwater dlq` and `headwater replay`: dead letters and second chances, on the terminal."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from headwater.cli.output import EXIT_FAILED, ago, json_line, say, table
from headwater.cli.session import opened
from headwater.errors import AlreadyThere, BadInput, NotFound
from headwater.events import replay
from headwater.events.delivery import Consumer
from headwater.events.replay import Replayed
from headwater.store.log import dead_letters
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.tail import Window
from headwater.wire import Parts

Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
OfConsumer = Annotated[str | None, typer.Option("--consumer", help="Only this consumer's.")]
OfKind = Annotated[str | None, typer.Option("--kind", help="Only events of this kind.")]
_LENGTH = re.compile(r"(\d{1,5}) ?(s|m|h|d)(?: ago)?")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

dlq = typer.Typer(help="Dead letters: events that a consumer could not handle.", no_args_is_help=True)


@dlq.command("list")
def list_letters(
    state: Annotated[str, typer.Option(help="dead, retrying, waiting, replayed or skipped.")] = "dead",
    limit: Annotated[int, typer.Option(help="How many letters.", min=1, max=10_000)] = 50,
    as_json: Json = False,
) -> None:
    """Letters in a state, newest first."""
    from headwater.api.dead_letters import letter_json

    with opened() as (parts, _):
        found = parts.db.read_now(dead_letters.page, state, limit=limit)
        now = parts.now()
    if as_json:
        for letter in found:
            json_line(letter_json(letter))
    elif found:
        columns = ("id", "consumer", "kind", "key", "failed", "error")
        table("", columns, [_letter_row(letter, now) for letter in found])
    else:
        say(f"No letter is {state}.")


def _letter_row(letter: DeadLetter, now: datetime) -> tuple[object, ...]:
    event = letter.event
    return letter.id, letter.consumer, event.kind, event.key, ago(letter.last_failed_at, now), letter.error


@dlq.command("show")
def show_letter(letter_id: Annotated[int, typer.Argument(help="The letter's id.")], as_json: Json = False) -> None:
    """One letter: the event, how often it was tried, and what went wrong."""
    from headwater.api.dead_letters import letter_json

    with opened() as (parts, _):
        letter = parts.db.read_now(dead_letters.find, letter_id)
    if letter is None:
        raise NotFound(f"There is no letter {letter_id}. `headwater dlq list` lists them.")
    if as_json:
        json_line(letter_json(letter))
    else:
        for name, value in letter_json(letter).items():
            say(f"{name:16} {'' if value is None else value}")


@dlq.command("replay")
def replay_letters(
    letter_ids: Annotated[list[int] | None, typer.Argument(help="Letters to replay.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    consumer: OfConsumer = None,
    kind: OfKind = None,
    as_json: Json = False,
) -> None:
    """Give dead letters their effect, once. What fails again stays dead."""
    if bool(letter_ids) == (everything or bool(consumer or kind)):
        raise BadInput("Name letters by their ids, or say --all, --consumer or --kind.")
    with opened() as (parts, _):
        if consumer:
            replay.consumer_named(consumer, parts.consumers)
        ids = letter_ids or parts.db.read_now(replay.dead_letter_ids, consumer, kind)
        failed = sum(not _replay_one(parts, letter_id, as_json) for letter_id in ids)
    if not as_json:
        say(f"{len(ids) - failed} replayed, {failed} failed.")
    if failed:
        raise typer.Exit(EXIT_FAILED)


def _replay_one(parts: Parts, letter_id: int, as_json: bool) -> bool:
    try:
        error = parts.db.write_now(replay.replay_dead_letter, parts.consumers, letter_id, parts.now())
    except (NotFound, AlreadyThere) as trouble:
        error = trouble.detail
    if as_json:
        json_line({"id": letter_id, "replayed": error is None, "error": error})
    elif error:
        say(f"{letter_id}: {error}")
    return error is None


@dlq.command("resolve")
def resolve_letter(letter_id: Annotated[int, typer.Argument(help="The letter's id.")], as_json: Json = False) -> None:
    """Skip a dead letter: its event has no effect, and what waits behind it goes on."""
    with opened() as (parts, _):
        parts.db.write_now(replay.skip_dead_letter, parts.consumers, letter_id, parts.now())
    json_line({"id": letter_id, "state": "skipped"}) if as_json else say(f"Letter {letter_id} is skipped.")


def replay_log(
    start: Annotated[
        str | None, typer.Option(help="From when: a time as in ISO 8601, or 2h for two hours ago.")
    ] = None,
    end: Annotated[str | None, typer.Option(help="Until when; default: now.")] = None,
    consumer: OfConsumer = None,
    kind: OfKind = None,
    key: Annotated[str | None, typer.Option(help="Only events of this key, such as source:12.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Empty the consumer and let it read the whole log again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Deliver events of the log again to consumers in which they had no effect yet.

    What a consumer has not reached yet is left to it.
    """
    with opened() as (parts, _):
        chosen = [replay.consumer_named(consumer, parts.consumers)] if consumer else list(parts.consumers)
        if rebuild:
            if consumer is None or start or end or kind or key or dry_run:
                raise BadInput("--rebuild goes with --consumer and nothing else.")
            _rebuild(parts, chosen[0], as_json)
            return
        window = _window(start, end, kind, key, chosen, parts.now())
        for one in chosen:
            done = replay.replay_window(
                parts.db, one, window, parts.now, dry_run=dry_run, has_cursors=parts.follows_table
            )
            json_line({**done._asdict(), "dry_run": dry_run}) if as_json else _say_replayed(done, dry_run)


def _window(
    start: str | None, end: str | None, kind: str | None, key: str | None, chosen: list[Consumer], now: datetime
) -> Window:
    if start is None:
        raise BadInput("Say from when: --start 2h, or --start 2026-01-07T09:00.")
    wanted = frozenset[str]().union(*(one.kinds for one in chosen))
    if kind is not None and kind not in wanted:
        raise BadInput(f"None of these consumers takes {kind}. They take: {', '.join(sorted(wanted))}.")
    until = moment_in(end, now) if end else now
    return Window(moment_in(start, now), until, frozenset({kind}) if kind else wanted, key or "")


def _say_replayed(done: Replayed, dry_run: bool) -> None:
    words = "would be delivered" if dry_run else "delivered"
    say(
        f"{done.consumer}: {done.found} found, {done.handled} handled before, {done.delivered} {words}, "
        f"{done.unreached} left to the running consumer."
    )


def _rebuild(parts: Parts, consumer: Consumer, as_json: bool) -> None:
    parts.db.write_now(replay.rebuild, consumer, parts.now())
    passed = sum(replay.catch_up(parts.db, consumer, parts.now))
    done = {"consumer": consumer.name, "events": passed}
    json_line(done) if as_json else say(f"{consumer.name} is rebuilt from {passed} events.")


def moment_in(text: str, now: datetime) -> datetime:
    """A time as people type it: ISO 8601 (UTC where no zone is given), or how long ago: 90s, 30m, 2h, 7d."""
    length = _LENGTH.fullmatch(text.strip())
    if length:
        return now - timedelta(**{_UNITS[length[2]]: int(length[1])})
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise BadInput(f"{text} is no time. Write 2026-01-07T09:00, or 2h for two hours ago.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
