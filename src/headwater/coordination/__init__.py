"""What processes coordinate: locks."""
