"""Kafka as the log: `follow` runs the consumers, `setup` creates what they need, `check` finds what is wrong."""
