"""A small simulated internet on loopback. It knows nothing of the rest of Headwater, and is asked only by HTTP."""
