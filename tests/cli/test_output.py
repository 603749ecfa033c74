"""What every command prints arrives whole, however slowly it is read, and nobody has to read to the end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from headwater.cli.commands import program
from support.web import Answer, Web, rss, web

Headwater = Callable[..., Any]
Run = Callable[..., dict[str, Any]]
SERVERS = {("up",), ("demo",)}
EMPTY = {
    ("checkpoints", "list"),
    ("dedup", "sample"),
    ("dlq", "list"),
    ("fleet", "machines"),
    ("fleet", "trades"),
    ("images", "failed"),
    ("keys", "list"),
    ("market", "show"),
    ("pool", "list"),
    ("replies", "1"),
    ("tokens", "list"),
    ("webhooks", "list"),
}
ARGUMENTS = {
    ("add",): ["{feed}"],
    ("crawl",): ["--all"],
    ("remove",): ["1"],
    ("import",): ["{opml}"],
    ("export",): ["{folder}/out.opml"],
    ("try",): ["{file}"],
    ("search",): ["lithium"],
    ("post",): ["1"],
    ("db", "downgrade"): ["base", "--yes"],
    ("fleet", "add"): ["--usd-per-kwh", "0.05", "--hashrate-th", "100", "--power-w", "3000"],
    ("fleet", "trade"): ["buy", "0.1", "6000"],
    ("fleet", "correct"): ["1", "buy", "0.2", "6000"],
    ("fleet", "import"): ["machines", "{folder}/none.csv"],
    ("backup",): ["{folder}/out.backup", "--replace"],
    ("restore",): ["{folder}/none.backup"],
    ("people", "invite"): ["bob@example.org"],
    ("people", "role"): ["owner", "owner"],
    ("people", "email"): ["owner", "ann@example.org"],
    ("people", "login"): ["owner"],
    ("people", "tenant"): ["Research", "--owner", "carl@example.org"],
}


def json_commands() -> list[tuple[str, ...]]:
    """Returns every command that has `--json`, with the words that it needs."""
    found = []
    waiting: list[tuple[tuple[str, ...], Any]] = [((), get_command(program()))]
    while waiting:
        words, command = waiting.pop()
        if hasattr(command, "commands"):
            waiting += [((*words, name), inner) for name, inner in command.commands.items()]
        elif words not in SERVERS and any("--json" in one.opts for one in command.params):
            needed = [one for one in command.params if one.required]
            found.append((*words, *ARGUMENTS.get(words, ["1"] * len(needed)), "--json"))
    return sorted(found)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, environ_of: Callable[[Path], dict[str, str]]) -> Iterator[Run]:
    """Run commands one after the other, each on a copy of one store and in a process of its own."""
    folder = tmp_path_factory.mktemp("output")
    (folder / "feed.xml").write_text(rss(*(f"lithium {number}" for number in range(40))))
    environ = environ_of(folder / "data") | {"PYTHONUNBUFFERED": "1"}
    with web() as world:
        world.pages["/feed"] = Answer(rss("one", "lithium"))
        (folder / "in.opml").write_text(f'<opml><body><outline xmlUrl="{world.url("/feed")}"/></body></opml>')
        names = {"feed": world.url("/feed"), "opml": folder / "in.opml", "file": folder / "feed.xml", "folder": folder}
        subprocess.run([sys.executable, "-m", "headwater", "add", world.url("/feed")], env=environ, check=True)
        runner = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("run_commands.py"))],
            env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

        def ask(words: tuple[str, ...], reader: str) -> dict[str, Any]:
            assert runner.stdin
            assert runner.stdout
            runner.stdin.write(json.dumps({"words": [word.format(**names) for word in words], "reader": reader}) + "\n")
            runner.stdin.flush()
            answer: dict[str, Any] = json.loads(runner.stdout.readline())
            return answer

        yield ask
        runner.communicate()


def shapes(out: str) -> list[list[str]]:
    """Returns the names in each line, which has to be a whole JSON object. Values such as times may differ."""
    return [sorted(json.loads(line)) for line in out.splitlines() if line]


@pytest.mark.parametrize("words", json_commands(), ids=" ".join)
def test_a_slow_reader_gets_everything_and_one_who_leaves_early_does_no_harm(run: Run, words: tuple[str, ...]) -> None:
    whole = run(words, "quick")
    assert whole["code"] in (0, 1, 2)
    assert shapes(whole["out"]) or words[:-1] in EMPTY
    slow = run(words, "slow")
    assert (slow["code"], shapes(slow["out"])) == (whole["code"], shapes(whole["out"]))
    assert run(words, "leaves") == {"code": whole["code"], "out": "", "trouble": ""}


@contextmanager
def piped(environ: dict[str, str], *words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater", *words], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_more_than_a_pipe_holds_arrives_whole(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "feed.xml"
    file.write_text(rss(*(f"{number} {'long ' * 1000}" for number in range(60))))
    with piped(environ | {"PYTHONUNBUFFERED": "1"}, "try", str(file), "--json") as process:
        assert process.stdout
        out = b""
        while got := process.stdout.read1(65_536):
            out += got
            time.sleep(0.5)
        assert process.wait() == 0
    assert len(out) > 2 * 65_536
    assert len(json.loads(out)["entries"]) == 60


def test_head_ends_the_output_and_not_the_work(environ: dict[str, str], headwater: Headwater, world: Web) -> None:
    for number in range(3):
        world.pages[f"/{number}"] = Answer(rss(f"post {number}"))
    addresses = [world.url(f"/{number}") for number in range(3)]
    with piped(environ, "add", *addresses, "--json") as process:
        assert process.stdout
        assert process.stderr
        assert json.loads(process.stdout.readline())["posts"] == 1
        process.stdout.close()
        assert (process.wait(), process.stderr.read()) == (0, b"")
    assert len(headwater("sources", "--json").lines) == 3
