"""State machines that own a shard of an internal topic: group coordination. Pure."""
