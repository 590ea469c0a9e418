"""Consumer groups (KIP-848): the coordinator assigns, members follow heartbeat by heartbeat.

They live in the shards of `broker.coordinator.group`, beside classic groups, under the same rules,
and keep one more: a handler decides and *writes* records, and writing one is the only thing that
changes what is persisted, by the same code that replays it. So the state is what the log says.

    consumer_group.py    the state of a group, and its invariants
    member.py            the two halves of a member: what it wants, what it has
    records.py           what is in the log
    heartbeat.py         ConsumerGroupHeartbeat: the life of a member, in order
    subscriptions.py     what members read, by name and by pattern; when the group's epoch grows
    targets.py           when the assignors run (`assignors/`)
    reconciliation.py    how a member gets to its target
    departures.py        members that leave, fall silent, or do not give up in time
    classic_members.py   members that still speak JoinGroup and SyncGroup
    migration.py         a classic group becomes a consumer group, and back
    administration.py    describe, list, delete; what commits are allowed
"""
