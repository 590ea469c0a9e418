"""The group coordinator and the transaction coordinator, without any IO.

Each is a set of shards. A shard is a state machine that owns one partition of an internal topic.
`output.py` is the contract between a shard and its shell (`broker.server.coordinators.shards`).
"""
