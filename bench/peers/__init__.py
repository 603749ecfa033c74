"""The programs that people use for this today, each installed and run in its best setting by one module.

A peer is a module with `NAME` and `poll(job) -> Outcome`. It raises CannotBeHad where it cannot be installed here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from resource import struct_rusage
from typing import NamedTuple

import corpus
from measure import Pass, Peak, cpu_seconds

PROGRAMS = corpus.CACHE / "peers"


class CannotBeHad(Exception):
    """Raised if a peer cannot be installed or run here; the text says why."""


class Job(NamedTuple):
    """The job of a peer: read these feeds, and once more when nothing has changed."""

    urls: list[str]
    folder: Path  # empty, for the peer's own files
    limit: float  # seconds for one pass
    authority: Path  # the certificate to trust


class Outcome(NamedTuple):
    version: str
    first: Pass
    unchanged: Pass
    feeds: int  # with at least one entry
    entries: int
    note: str = ""


def environment(job: Job, **more: str) -> dict[str, str]:
    """Returns a small environment in which the benchmark's own certificate is trusted."""
    trust = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), str(job.authority))
    return {"HOME": str(job.folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **trust, **more}


Command = Sequence[str | os.PathLike[str]]


def run_to_its_end(command: Command, job: Job, env: Mapping[str, str], database: int | None = None) -> Pass:
    """Measures one pass of a peer that is started for each pass and ends by itself."""
    database_before, start = cpu_seconds(database) if database else 0.0, time.monotonic()
    with (job.folder / "log").open("ab") as log:
        process = subprocess.Popen(command, env=env, cwd=job.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    peak = Peak(process.pid)
    with peak.watched():
        status, usage = _wait(process.pid, start + job.limit)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    if process.returncode != 0:
        raise CannotBeHad(f"{Path(command[0]).name} ended with {process.returncode}: {last_words(job)}")
    database_cpu = cpu_seconds(database) - database_before if database else 0.0
    return Pass(usage.ru_utime + usage.ru_stime, database_cpu, wall, peak.mb)


def _wait(pid: int, deadline: float) -> tuple[int, struct_rusage]:
    while time.monotonic() < deadline:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            return status, usage
        time.sleep(0.02)
    os.kill(pid, 9)
    os.wait4(pid, 0)
    raise CannotBeHad("the time limit passed")


def wait_until(true: Callable[[], bool], limit: float, pause: float = 0.1) -> None:
    deadline = time.monotonic() + limit
    while not true():
        if time.monotonic() > deadline:
            raise CannotBeHad("the time limit passed")
        time.sleep(pause)


def last_words(job: Job) -> str:
    return (job.folder / "log").read_text(errors="replace")[-500:].strip()


def python_with(*packages: str) -> Path:
    """Returns the Python of a virtual environment with these packages."""
    folder = PROGRAMS / f"python-{packages[0]}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        say(f"installing {packages[0]}")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        if subprocess.run(install).returncode != 0:
            raise CannotBeHad(f"pip cannot install {' '.join(packages)}")
        (folder / "complete").touch()
    return python


def version_of(python: Path, package: str) -> str:
    ask = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()


def debian_program(name: str, package: str) -> str:
    found = shutil.which(name)
    if not found and os.getuid() == 0 and shutil.which("apt-get"):
        say(f"installing {package}")
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "install", "-y", "-qq", package], env=env, stdout=subprocess.DEVNULL)
        found = shutil.which(name)
    if not found:
        raise CannotBeHad(f"the Debian package {package} is not installed")
    return found


def go_program(package: str, module: str, version: str, tags: str = "") -> Path:
    """Returns a Go program: one in PATH, or built from its module. `version` may be "latest"."""
    name = package.removesuffix("/v2").rpartition("/")[2].partition(".")[0]
    built = PROGRAMS / f"{name}-{version}" / name
    on_path, go = shutil.which(name), shutil.which("go")
    if on_path or built.exists():
        return Path(on_path) if on_path else built
    if not go:
        raise CannotBeHad(f"{name} is not in PATH, and there is no Go to build it with")
    say(f"building {name} {version}")
    built.parent.mkdir(parents=True, exist_ok=True)
    # A named version is written down instead of asked for, because not every mirror of modules can list versions.
    require = "" if version == "latest" else f"require {module} {version}\n"
    (built.parent / "go.mod").write_text(f"module headwater.example/bench\n\ngo 1.24\n\n{require}")
    steps = [[go, "get", f"{package}@latest"]] if version == "latest" else []
    steps.append([go, "build", "-tags", tags, "-o", str(built), package])
    env = {**os.environ, "GOPATH": str(PROGRAMS / "go"), "GOFLAGS": "-mod=mod -modcacherw", "CGO_ENABLED": "1"}
    for step in steps:
        answer = subprocess.run(step, cwd=built.parent, env=env, capture_output=True, text=True, timeout=1200)
        if answer.returncode != 0:
            raise CannotBeHad(f"{name} does not build: {answer.stderr.strip().splitlines()[-1].strip()}")
    return built


def go_version(program: Path, module: str) -> str:
    """Returns the version of the module that a Go program was built from."""
    go = shutil.which("go")
    parts = subprocess.run([go, "version", "-m", program], capture_output=True, text=True).stdout if go else ""
    found = re.search(rf"\s{re.escape(module)}\s+(v\S+)", parts)
    return found[1] if found else "unknown version"


def say(words: str) -> None:
    print(f"  {words} ...", file=sys.stderr, flush=True)
