"""What processes share apart from the store: locks, limits, a cache, and what others may see of visits."""
