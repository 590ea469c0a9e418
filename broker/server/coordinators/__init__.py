"""The shells of the pure coordinators: they append a shard's records, then send its replies."""
