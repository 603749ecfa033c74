"""What belongs to people: accounts, tokens, webhooks, secrets."""
