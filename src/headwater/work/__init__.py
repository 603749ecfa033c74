"""The loops that run in the background."""
