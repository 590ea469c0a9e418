"""Consumer groups (KIP-848): the coordinator assigns partitions, and members follow by heartbeats.

Consumer groups live in the shards of `broker.coordinator.group`, beside classic groups and under
the same rules. One more rule holds here: a handler changes persisted state only by writing a
record, and `replay.write` applies the record with the code that loading uses. So the state equals
the log.

    consumer_group.py    the state of a group, and its invariants
    member.py            the two records of a member: its subscription and its current assignment
    records.py           the records in the log
    heartbeat.py         ConsumerGroupHeartbeat: a member joins, stays, is assigned, leaves
    subscriptions.py     the topics of members, by name and by pattern; when the group epoch grows
    targets.py           when the assignors run (`assignors/`)
    reconciliation.py    how a member reaches its target assignment
    departures.py        members that leave, time out, or do not revoke partitions in time
    classic_members.py   members that still use JoinGroup and SyncGroup
    migration.py         a classic group becomes a consumer group, and back
    administration.py    describe, list, delete; which commits and fetches of offsets are allowed
"""
