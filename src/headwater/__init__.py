"""Headwater: follow everything; read each story once."""

__version__ = "0.2.0"
