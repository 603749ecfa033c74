"""Replays dead letters, by the name that the document of the event platform has for it. It takes the options of
`headwater dlq replay`:

python scripts/replay_dlq.py --event-id ID
"""

import sys

from headwater.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["dlq", "replay"]
    main()
