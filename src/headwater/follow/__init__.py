"""What is watched: adding sources, OPML, finding feeds, the pool and its tiers, pushes by hubs."""
