"""The log on Kafka: `follow` reads it, `setup` makes what it needs, `check` says what is wrong."""
