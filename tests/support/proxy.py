"""nginx in front of a server on loopback, as plain as it can be configured."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.ports import free_port, wait_until_open

_CONFIGURATION = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {servers}
}}
"""
_PLAIN = "server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{behind}; }} }}"


@contextmanager
def nginx_before(behind: int, folder: Path, servers: Callable[[int], str] | None = None) -> Iterator[int]:
    """Starts nginx in front of the server on port `behind`. Yields its own port; skips the test where it is missing.

    `servers` makes the configuration of its servers for a port; none: the plainest one.
    """
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("no nginx (scripts/services install nginx)")
    port = free_port()
    wanted = servers(port) if servers else _PLAIN.format(port=port, behind=behind)
    configuration = folder / "nginx.conf"
    configuration.write_text(_CONFIGURATION.format(folder=folder, servers=wanted), encoding="utf-8")
    process = subprocess.Popen([nginx, "-c", str(configuration), "-e", str(folder / "error.log")])
    try:
        wait_until_open(port)
        yield port
    finally:
        process.terminate()
        process.wait(30)
