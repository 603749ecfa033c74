"""Consumers: code that gives events their effect, exactly once. Each is a declaration and a function."""
