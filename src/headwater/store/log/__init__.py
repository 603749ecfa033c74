"""The event log: outbox, inboxes, dead letters, and how the log is doing."""
