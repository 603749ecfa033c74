"""What several processes agree on."""
