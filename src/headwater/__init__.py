"""Headwater: follow everything; read each story once."""

__version__ = "0.1.0"
