"""State machines that own a shard of an internal topic: groups and transactions. Pure.

`output.py` is what every shard says to its shell (`broker.server.coordinators.shards`).
"""
