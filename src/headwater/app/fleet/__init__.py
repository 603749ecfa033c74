"""The operator's desk: machines, trades, and what they come to."""
