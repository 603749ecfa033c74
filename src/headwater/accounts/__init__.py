"""Who may come in: the owner, the one-time login link, sessions and API tokens."""
