"""Share groups at the leader of a partition (KIP-932): pure state, no clock, no socket.

A share-partition is one partition as one share group sees it. Its leader delivers every record to
one member at a time and counts the deliveries (`share_partition`); a member reads through a share
session (`session_cache`). The group coordinator and the share coordinator of `__share_group_state`
are in `broker/coordinator`. Start with `share_partition`.
"""
