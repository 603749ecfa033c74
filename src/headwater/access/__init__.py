"""Access to servers with rules of their own: API keys, rate limits, requests paid by the month, robots.txt."""
