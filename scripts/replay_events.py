"""Delivers the events of a time window again, by the name that the document of the event platform has for it. It takes
the options of `headwater replay`:

python scripts/replay_events.py --start '2026-01-07 10:00' --end '2026-01-07 11:00'
"""

import sys

from headwater.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["replay"]
    main()
