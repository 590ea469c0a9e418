"""The group coordinator, the share coordinator and the transaction coordinator, without any IO.

Each is a set of shards. A shard is a state machine that owns one partition of an internal topic.
`output.py` is the contract between a shard and its shell (`broker.server.coordinators.shards`);
`timers.py` keeps a shard's deadlines, and `partitioning.py` finds the partition of a name.

    group              the shard of groups, which dispatches, and committed offsets
    share_group, streams_group
    consumer_group
    classic_group      the kinds of groups; each may use those below it
    group_state        what all kinds work with: a shard's state, a Step, settings
    share_state        the share coordinator
    transaction        the transaction coordinator
"""
