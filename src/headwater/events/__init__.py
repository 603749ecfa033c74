"""Facts that commit with the change they tell of. `catalogue` declares every kind; `store.log.outbox` keeps them."""
