"""What runs when."""
