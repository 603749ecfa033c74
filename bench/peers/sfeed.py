"""sfeed (C and shell; one text file for each feed), by its own update script. It never asks conditionally."""

from __future__ import annotations

import subprocess

from peers import Job, Outcome, debian_program, environment, run_to_its_end

NAME = "sfeed"


def poll(job: Job) -> Outcome:
    program = debian_program("sfeed_update", "sfeed")
    store = job.folder / "feeds"
    store.mkdir()
    feeds = "".join(f"feed {number:06d} {url}\n" for number, url in enumerate(job.urls))
    (job.folder / "sfeedrc").write_text(f"sfeedpath={store}\nmaxjobs=4\nfeeds() {{\n{feeds}}}\n")
    # It ends with 1 where any feed failed; feeds that are missing show in the counts.
    command = ["/bin/sh", "-c", f"{program} {job.folder}/sfeedrc || true"]
    first = run_to_its_end(command, job, environment(job))
    unchanged = run_to_its_end(command, job, environment(job))
    counts = [path.read_bytes().count(b"\n") for path in store.iterdir()]
    answer = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "sfeed"], capture_output=True, text=True)
    return Outcome(answer.stdout or "unknown version", first, unchanged, sum(map(bool, counts)), sum(counts))
