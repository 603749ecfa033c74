"""Parsing of untrusted bytes, in processes with limits."""
