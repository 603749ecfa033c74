"""What belongs to people: accounts with their tokens and secrets, webhooks and their deliveries."""
