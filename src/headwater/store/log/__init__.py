"""Events: the outbox that is the log, and what consumers have done with it."""
