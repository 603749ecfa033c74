"""A week of a simulated Reddit, lived through by Headwater, and a comparison of what came of it with what was true.

    python -m headwater.sim.week --seeds 20

`course` is the week, `life` a Headwater process in it, `truth` what its store has to hold. The rest of `sim` knows
nothing of Headwater; this is a way in, as the command line is.
"""
