"""A small simulated internet on loopback. It does not import the rest of Headwater; clients reach it only by HTTP."""
