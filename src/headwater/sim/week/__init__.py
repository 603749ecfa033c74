"""Headwater follows a simulated Reddit for a week; then its store is compared with what Reddit showed.

    python -m headwater.sim.week --seeds 20

`course` is the week, `life` a Headwater process in it, `truth` what its store must hold. The rest of `sim` does not
import Headwater; this package may, as the command line does.
"""
