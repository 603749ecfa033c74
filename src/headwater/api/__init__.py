"""The HTTP API: routes, their shapes, and the rules at the door."""
