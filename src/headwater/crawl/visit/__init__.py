"""One visit to one source. `document` and `listing` are the two shapes of a source."""
