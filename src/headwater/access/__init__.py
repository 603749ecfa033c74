"""Ways to a server that has rules of its own: API keys, budgets of requests, robots.txt."""
