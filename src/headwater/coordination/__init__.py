"""What processes share beside the store: locks, limits, a cache, and what others may see of visits."""
