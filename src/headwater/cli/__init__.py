"""The command line. Each command has `--json` (JSON lines) and exit codes: 0 ok, 1 failed, 2 bad usage."""

from __future__ import annotations

import os
import sys

from headwater.errors import HeadwaterError


def main() -> None:
    os.umask(0o077)  # the store, its key and its images are nobody else's
    _load_structlog()
    from headwater.cli.commands import app
    from headwater.cli.session import fail

    try:
        app()
    except HeadwaterError as error:
        sys.exit(fail(error))
    except BrokenPipeError:
        # Whoever reads our output has seen enough (`headwater stream | head`).
        sys.stderr.close()
        sys.exit(0)


def _load_structlog() -> None:
    """Loads structlog without rich and pygments. It would load them, 6 MB, for tracebacks in colour, which we never
    print."""
    sys.modules["rich"] = None  # type: ignore[assignment]  # as an import that fails
    import structlog.tracebacks

    assert structlog.tracebacks
    del sys.modules["rich"]
