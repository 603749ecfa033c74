"""Events: facts that commit together with the change they describe. `catalogue` declares every kind."""
