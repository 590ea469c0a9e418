"""Groups and their offsets: each handler puts its request to the group's shard."""
