"""Share groups (KIP-932): several members may read the same partition, record by record.

Share groups live in the shards of `broker.coordinator.group`, beside classic and consumer groups
and under the same rules: a handler changes persisted state only by writing a record, and
`replay.write` applies the record with the code that loading uses. So the state equals the log.

A member takes its target assignment at once, because no partition has to be given up by another
member first. A partition is assigned only after the share coordinator has state for it: the group
coordinator has that state initialised (`initialization.py`), which is an effect of a heartbeat.

    share_group.py       the state of a group and of its members, and their invariants
    state_partitions.py  the partitions that have state, that are to get it, that are to lose it
    records.py           the records in the log; `replay.py` has their effects
    heartbeat.py         ShareGroupHeartbeat: a member joins, stays, is assigned, leaves
    targets.py           when the assignor runs (`simple_assignor.py`)
    departures.py        members that leave or time out; the end of a group
    initialization.py    the state of new partitions, and the end of the state of deleted topics
    offsets.py           the start offsets of a group: altered, deleted, described
    administration.py    description of a group
"""
