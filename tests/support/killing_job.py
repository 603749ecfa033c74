"""Celery's application with one more job, which kills the process that runs it, as running out of memory does."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

from headwater.work import periodic
from headwater.work.periodic import Job, JobTools


async def kill(_: JobTools) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


periodic.JOBS = (*periodic.JOBS, Job("kill", timedelta(days=1), "default", "tasks.tests.kill", "Kills.", kill))

from headwater.work.celery_app import app  # noqa: E402, F401 - the list of jobs has to be complete before
