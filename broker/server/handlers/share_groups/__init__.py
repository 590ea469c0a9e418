"""Membership and offsets of share groups (KIP-932), decided by the group's shard."""
