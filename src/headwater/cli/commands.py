"""The commands. Each one reads its arguments, calls the part that does the work, and says what came of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater import __version__, wire
from headwater.accounts import tokens
from headwater.cli import (
    checkpoints,
    crawling,
    dedup,
    demo,
    doctor,
    events,
    images,
    kafka,
    naming,
    periodic,
    pool,
    trying,
    webhooks,
    x,
)
from headwater.cli.loop import run_async
from headwater.cli.output import EXIT_FAILED, ago, fail, json_line, progress, say, table
from headwater.cli.session import opened
from headwater.crawl.warm_up import Warmed
from headwater.errors import BadInput
from headwater.follow import add as following
from headwater.follow import opml
from headwater.model import Reader
from headwater.settings import Settings, load, names_of
from headwater.store import migrate, sources
from headwater.store.posts import search, stream
from headwater.store.sources import leases
from headwater.wire import Parts

app = typer.Typer(
    name="headwater",
    help="Follow everything; read each story once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
schema = typer.Typer(help="The database's schema.", no_args_is_help=True)
app.add_typer(schema, name="db")
app.add_typer(events.dlq, name="dlq")
app.command("replay")(events.replay_log)
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(dedup.app, name="dedup")
app.add_typer(kafka.app, name="kafka")
app.add_typer(pool.app, name="pool")
app.add_typer(x.app, name="x")
app.add_typer(pool.tiers, name="tiers")
app.command("post")(pool.show_post)
app.command("comments")(pool.read_comments)
app.command("run")(periodic.run_job)
app.command("demo")(demo.demo)
app.add_typer(images.app, name="images")
app.add_typer(checkpoints.app, name="checkpoints")
app.command("stats")(checkpoints.show_statistics)

Json = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
KindOption = Annotated[str | None, typer.Option("--kind", help="How to read it, such as forum; default: find out.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the kind, NAME=VALUE; may be given several times.")
]


def _version(wanted: bool) -> None:
    if wanted:
        say(f"headwater {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


@app.command()
def up(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    crawl: Annotated[bool, typer.Option(help="Visit sources as well, not only serve the pages.")] = True,
    as_json: Json = False,
) -> None:
    """Run Headwater: the pages, the API and the crawl loop, until Ctrl-C."""
    from headwater.cli.logs import configure
    from headwater.cli.up import serve

    loaded = load(host=host, port=port, log_format="json" if as_json else None)
    configure(loaded.settings.log_level, loaded.settings.log_format)
    parts = wire.open_parts(loaded)
    try:
        run_async(serve(parts, crawl=crawl))
    finally:
        parts.close()


@app.command()
def add(
    addresses: Annotated[list[str], typer.Argument(help="Addresses of feeds, or of sites that have one.")],
    folder: Annotated[str | None, typer.Option(help="Folder to put them in.")] = None,
    kind: KindOption = None,
    given: SetOption = None,
    as_json: Json = False,
) -> None:
    """Follow sources, and visit them at once. A long crawl is gone on with by `headwater up` or `headwater crawl`."""
    wanted = naming.settings(given)
    with opened() as (parts, owner):
        failed = 0
        for address in addresses:
            try:
                added = parts.db.write_now(
                    following.follow,
                    owner,
                    address,
                    parts.now(),
                    folder=folder,
                    seal=parts.seal,
                    kind=kind,
                    settings=wanted,
                )
            except BadInput as error:
                if len(addresses) == 1:
                    raise
                failed += bool(fail(error))
                continue
            if added.new_source or added.changed:
                run_async(crawling.crawl(parts, [added.source_id], lambda _report: None, whole=False))
            failed += _say_added(parts, owner, address, added, as_json)
    _exit_if(failed)


def _say_added(parts: Parts, owner: Reader, address: str, added: sources.Added, as_json: bool) -> bool:
    source_id = naming.source_id(
        parts, owner, address
    )  # another one if the feed behind this address was followed already
    source = parts.db.read_now(sources.watched_one, owner, source_id, parts.now())
    assert source is not None
    posts = parts.db.read_now(sources.count_posts, source_id)
    already = not added.new_subscription or source_id != added.source_id
    if as_json:
        json_line({"source_id": source.id, "address": source.address, "title": source.title, "posts": posts,
                   "status": source.status, "already_there": already, "error": source.last_error})  # fmt: skip
    elif source.last_error:
        again = ago(source.next_check_at, parts.now())
        say(f"Following {source.address}, but: {source.last_error} It will be tried again {again}.")
    else:
        words = "Already following" if already else "Following"
        say(f"{words} {source.title} ({source.address}): {posts} {'post' if posts == 1 else 'posts'}.")
    return bool(source.last_error)


@app.command()
def remove(
    source: Annotated[str, typer.Argument(help="Address or id of a source that you follow.")], as_json: Json = False
) -> None:
    """Stop following a source. Its posts stay in the store."""
    with opened() as (parts, owner):
        source_id = naming.source_id(parts, owner, source)
        parts.db.write_now(following.unfollow, owner, source_id, parts.now())
    json_line({"removed": source_id}) if as_json else say(f"No longer following {source}.")


@app.command("sources")
def list_sources(as_json: Json = False) -> None:
    """What is followed, how it is doing, when it was and will be checked."""
    with opened() as (parts, owner):
        now = parts.now()
        watched = parts.db.read_now(sources.watched, owner, now)
    if as_json:
        for source in watched:
            json_line(source._asdict())
        return
    if not watched:
        say("You follow nothing yet. Try `headwater add ADDRESS` or `headwater import FILE.opml`.")
        return
    columns = ("id", "title", "status", "last check", "next check", "problem")
    table(
        "",
        columns,
        [(s.id, s.title, s.status, ago(s.last_crawled_at, now), _next(s, now), s.last_error) for s in watched],
    )


def _next(source: sources.WatchedSource, now: Any) -> str:
    if not source.active:
        return "never"
    if source.checking:
        return "being checked"
    due = "now" if source.next_check_at <= now else ago(source.next_check_at, now)
    return f"{due}, {source.waits_for}" if source.waits_for else due


@app.command()
def crawl(
    which: Annotated[list[str] | None, typer.Argument(help="Addresses or ids; none: all that are due.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that you follow, due or not.")] = False,
    tier: Annotated[str | None, typer.Option(help="All that you follow of a tier: high, medium or low.")] = None,
    warm_up: Annotated[
        bool,
        typer.Option(
            "--warm-up",
            help="Only cache the best of the month of these communities, or of the pool's; no watermark moves.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Visit sources now and say what each visit brought."""
    if warm_up:
        _warm_up(which or [], as_json)
        return
    with opened() as (parts, owner):
        if which:
            ids = [naming.source_id(parts, owner, name) for name in which]
        elif tier:
            ids = parts.db.read_now(pool.of_tier, owner, tier)
        elif everything:
            ids = parts.db.read_now(sources.followed_ids, owner)
        else:
            ids = parts.db.read_now(leases.due_ids, parts.now())
        with progress() as bar:
            task = bar.add_task("visiting", total=len(ids))

            def on_report(report: dict[str, Any]) -> None:
                bar.advance(task)
                json_line(report) if as_json else _say_report(report)

            failures = run_async(crawling.crawl(parts, ids, on_report))
    if not as_json:
        say(f"{len(ids)} visited, {failures} failed.")
    _exit_if(failures)


def _warm_up(which: list[str], as_json: bool) -> None:
    failures = 0

    def on_warmed(one: Warmed) -> None:
        nonlocal failures
        failures += one.error is not None
        json_line(one._asdict()) if as_json else say(f"{one.cached:4} cached  {one.source}  {one.error or ''}")

    cached = periodic.warm_up(which, on_warmed)
    if not as_json:
        say(f"{cached} listings cached, {failures} failed. No post was stored and no watermark moved.")
    _exit_if(failures)


def _say_report(report: dict[str, Any]) -> None:
    counts = ", ".join(f"{report[name]} {name}" for name in ("new", "updated", "duplicates") if report[name])
    say(f"{report['outcome']:9} {report['source']}  {report['error'] or counts}")


@app.command("stream")
def show_stream(
    limit: Annotated[int, typer.Option(help="How many stories.", min=1, max=100_000)] = 30,
    unread: Annotated[bool, typer.Option("--unread", help="Only what you have not read.")] = False,
    source: Annotated[str | None, typer.Option(help="Only this source (address or id).")] = None,
    as_json: Json = False,
) -> None:
    """The newest stories, each once."""
    from headwater.app.shapes import story_json

    with opened() as (parts, owner):
        source_id = naming.source_id(parts, owner, source) if source else None
        wanted = stream.Filter(source_id=source_id, unread=unread)
        found = parts.db.read_now(stream.page, owner, wanted, limit=limit)
        now = parts.now()
    if as_json:
        for story in found:
            json_line(story_json(story))
        return
    table("", ("when", "source", "title"), [_story_row(story, now) for story in found])
    if not found:
        say("Nothing here yet. `headwater sources` shows what is followed and how it is doing.")


def _story_row(story: stream.Story, now: Any) -> tuple[str, str, str]:
    first = story.post
    more = f" (+{len(story.members) - 1})" if len(story.members) > 1 else ""
    return ago(first.created_at, now), first.source + more, first.title or first.url or ""


@app.command("search")
def search_posts(
    words: Annotated[list[str], typer.Argument(help="Words that all have to be there; `mine*` is a beginning.")],
    limit: Annotated[int, typer.Option(help="How many posts.", min=1, max=10_000)] = 30,
    as_json: Json = False,
) -> None:
    """Find posts by their words, newest first."""
    from headwater.app.shapes import post_json

    with opened() as (parts, owner):
        ids = parts.db.read_now(search.find, owner, " ".join(words), limit=limit)
        found = parts.db.read_now(stream.posts_by_id, owner, ids)
        now = parts.now()
    if as_json:
        for post in found:
            json_line(post_json(post))
    elif found:
        table("", ("when", "source", "title"), [(ago(post.created_at, now), post.source, post.title) for post in found])
    else:
        say("Nothing found.")


@app.command("try")
def try_source(
    what: Annotated[str, typer.Argument(help="A file, or the address of a feed or site.")],
    kind: KindOption = None,
    given: SetOption = None,
    as_json: Json = False,
) -> None:
    """Show what Headwater reads from a feed, or from a list and one of its items, without following it."""
    parts = wire.open_parts(load())
    try:
        tried = run_async(trying.read(parts, what, kind, naming.settings(given)))
    finally:
        parts.close()
    json_line(trying.document(tried)) if as_json else trying.tell(tried, parts.now())


@app.command("import")
def import_opml(
    file: Annotated[Path, typer.Argument(help="An OPML file; - for standard input.")], as_json: Json = False
) -> None:
    """Follow everything that an OPML file lists. They are visited by `headwater up`, or by `headwater crawl`."""
    document = sys.stdin.buffer.read() if str(file) == "-" else _read(file)
    outlines = opml.read(document)
    with opened() as (parts, owner), progress() as bar:
        listed = bar.track(outlines, description="adding")
        counts = parts.db.write_now(following.follow_all, owner, listed, parts.now(), parts.seal)
    if as_json:
        json_line({"added": counts.added, "already_there": counts.already, "refused": counts.refused})
        return
    say(f"{counts.added} added, {counts.already} were there already, {len(counts.refused)} refused.")
    for address, why in counts.refused.items():
        say(f"  {address[:100]}: {why}")


@app.command("export")
def export_opml(
    file: Annotated[Path | None, typer.Argument(help="Where to write; none: standard output.")] = None,
    as_json: Json = False,
) -> None:
    """Write what you follow as OPML."""
    with opened() as (parts, owner):
        watched = parts.db.read_now(sources.watched, owner, parts.now())
    document = opml.write(watched)
    if file is None:
        sys.stdout.buffer.write(document)
        return
    try:
        file.write_bytes(document)
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}.") from error
    json_line({"file": str(file), "sources": len(watched)}) if as_json else say(f"{len(watched)} sources in {file}.")


@app.command("config")
def show_config(as_json: Json = False) -> None:
    """Every setting: its value, where that came from, and what it means."""
    loaded = load()
    rows = []
    for name, field in Settings.model_fields.items():
        value, origin = getattr(loaded.settings, name), loaded.origins[name]
        rows.append((names_of(name, field)[0], value, origin, field.description))
    if as_json:
        for variable, value, origin, meaning in rows:
            shown = value if isinstance(value, int | float | str | None) else str(value)
            json_line({"name": variable, "value": shown, "from": origin, "meaning": meaning})
    else:
        table("", ("setting", "value", "from", "meaning"), rows)


@app.command()
def token(
    name: Annotated[str, typer.Option(help="What the token is for.")] = "command line", as_json: Json = False
) -> None:
    """Make a token for the API. It is shown once; only its hash is kept."""
    with opened() as (parts, owner):
        secret = parts.db.write_now(tokens.issue, owner, "api", name, parts.now())
    json_line({"token": secret}) if as_json else say(secret)


@app.command()
def login(as_json: Json = False) -> None:
    """Make a link that signs you in, once."""
    with opened() as (parts, owner):
        link = wire.login_link(parts, owner)
    json_line({"link": link}) if as_json else say(link)


@app.command("doctor")
def run_doctor(as_json: Json = False) -> None:
    """Check that this machine can run Headwater, and say what to do where it cannot."""
    findings = run_async(doctor.examine())
    for finding in findings:
        if as_json:
            json_line(finding._asdict())
        else:
            say(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.what}: {finding.detail}")
    _exit_if(sum(not finding.ok for finding in findings))


@schema.command("upgrade")
def db_upgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go to.")] = "head", as_json: Json = False
) -> None:
    """Bring the schema to the newest revision, or to a given one."""
    parts = wire.open_parts(load())
    try:
        migrate.upgrade(parts.db, revision)
        if migrate.current(parts.db) == migrate.head():
            wire.prepare_store(parts)
        _say_revision(parts, as_json)
    finally:
        parts.close()


@schema.command("downgrade")
def db_downgrade(
    revision: Annotated[str, typer.Argument(help="Revision to go back to; `base` drops everything.")],
    as_json: Json = False,
) -> None:
    """Take the schema back to an older revision."""
    parts = wire.open_parts(load())
    try:
        migrate.downgrade(parts.db, revision)
        _say_revision(parts, as_json)
    finally:
        parts.close()


def _say_revision(parts: Parts, as_json: bool) -> None:
    revision = migrate.current(parts.db)
    json_line({"revision": revision}) if as_json else say(f"The schema is at {revision or 'base (empty)'}.")


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from error


def _exit_if(failures: int) -> None:
    if failures:
        raise typer.Exit(EXIT_FAILED)
