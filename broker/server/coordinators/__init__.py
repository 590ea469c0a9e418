"""The shells of the pure coordinators: they append what a shard decides, then send its replies."""
